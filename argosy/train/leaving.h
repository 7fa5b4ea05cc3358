#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "argosy/comm/group.h"

namespace argosy::train::detail {

/// Ends a pass over batches early on all ranks together, whichever of them was asked to, although
/// they may have different numbers of batches.
class Leaving final {
 public:
  /// Nobody asks.
  Leaving() = default;
  /// `asked`: whether this rank has been; empty: nobody is. `batches`: of this rank; where a rank
  /// does not know them the pass is not left early. Collective, and so are the others.
  Leaving(std::function<bool()> asked, std::optional<int64_t> batches, const comm::Group& group);

  /// After batch `number`, from 0: whether to leave. Ranks ask each other after every eighth.
  [[nodiscard]] bool after(int64_t number);
  /// After the last batch: whether ranks that have more of them leave.
  [[nodiscard]] bool at_end();

 private:
  [[nodiscard]] bool together();

  std::function<bool()> asked_;
  comm::Group group_;
  int64_t rounds_ = 0;  // of the rank that has most
  int64_t round_ = 0;
  bool left_ = false;
};

}  // namespace argosy::train::detail
