#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "argosy/comm/group.h"

namespace argosy::train::detail {

/// Ends a pass over batches early, on all ranks together, when any of them is asked to. The ranks
/// may have different numbers of batches.
class Leaving final {
 public:
  /// Never leaves early.
  Leaving() = default;
  /// `asked` returns true if this rank was asked to leave; empty means never. `batches` is the
  /// number of this rank's batches; if any rank does not know it, no pass is left early.
  /// Collective, and so are the other members.
  Leaving(std::function<bool()> asked, std::optional<int64_t> batches, const comm::Group& group);

  /// Call it after batch `number`, counted from 0. Returns true if the ranks leave. They ask each
  /// other after every eighth batch.
  [[nodiscard]] bool after(int64_t number);
  /// Call it after the last batch. Returns true if ranks that have more batches leave.
  [[nodiscard]] bool at_end();

 private:
  [[nodiscard]] bool together();

  std::function<bool()> asked_;
  comm::Group group_;
  int64_t rounds_ = 0;  // of the rank with the most batches
  int64_t round_ = 0;
  bool left_ = false;
};

}  // namespace argosy::train::detail
