#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/transport/reduce.h"
#include "argosy/transport/types.h"

// Internal to the room: the order in which the ranks' data is combined.
namespace argosy::transport {

/// One reduction between the ranks of a group: its element type, its operation and its order.
///
/// This is the one place that says which rank's data comes when: the transports say where the data
/// of each rank lies, and none of them puts ranks in an order of its own. Not thread-safe.
class Reduction final {
 public:
  Reduction(int ranks, DType dtype, ReduceOp op)
      : dtype_(dtype), op_(op), sources_(static_cast<size_t>(ranks)) {}

  [[nodiscard]] int64_t element_bytes() const { return static_cast<int64_t>(size_of(dtype_)); }

  /// Combines `count` elements of every rank, in rank order, into `destination`. `piece_of(rank)`
  /// is where those of `rank` lie. `destination` may be the piece of one rank.
  template <typename PieceOf>
  void combine(void* destination, int64_t count, PieceOf piece_of) {
    for (size_t rank = 0; rank < sources_.size(); ++rank) {
      sources_[rank] = piece_of(static_cast<int>(rank));
    }
    reduce(sources_, destination, count, dtype_, op_);
  }

 private:
  const DType dtype_;
  const ReduceOp op_;
  std::vector<const void*> sources_;  ///< one per rank; kept between two pieces
};

}  // namespace argosy::transport
