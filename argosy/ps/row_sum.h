#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "argosy/ps/requests.h"
#include "argosy/ps/row_table.h"

namespace argosy::ps {

/// Writes the average of vectors of `out`'s length, nullptr for zeros. The sum has the order of
/// every sum here (transport/leaf_deal.h), so that it has the bits of an average by collectives.
void average_of(std::span<const float* const> of_workers, std::span<float> out);

/// The average of what workers pushed to the rows of one shard.
class RowSum final {
 public:
  /// `of_workers`: nullptr for one that pushed none. `shard`: counted from the server's first.
  /// Lifetime: the requests stay. With one worker nothing is copied.
  RowSum(std::span<const RowsPushed* const> of_workers, size_t shard, size_t dim);

  /// Rows by id, or in the order of the only worker.
  [[nodiscard]] const RowPush& push() const { return push_; }

 private:
  RowPush push_{};
  std::vector<uint64_t> ids_{};
  std::vector<float> gradients_{};
  std::vector<float> shows_{};
  std::vector<float> clicks_{};
};

}  // namespace argosy::ps
