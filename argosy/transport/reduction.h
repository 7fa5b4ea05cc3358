#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/transport/leaf_deal.h"
#include "argosy/transport/reduce.h"
#include "argosy/transport/types.h"

// Internal to the room: the order in which the ranks' data is combined.
namespace argosy::transport {

/// One reduction between the ranks of a group: its element type, its operation and its order.
///
/// This is the one place that says which data comes when: the transports say where the data of each
/// rank's nodes lies, and none of them puts them in an order of its own. Not thread-safe.
class Reduction final {
 public:
  /// Lifetime: refers to `deal`.
  Reduction(const LeafDeal& deal, DType dtype, ReduceOp op) : deal_(deal), dtype_(dtype), op_(op) {}

  [[nodiscard]] const LeafDeal& deal() const { return deal_; }
  [[nodiscard]] int64_t element_bytes() const { return static_cast<int64_t>(size_of(dtype_)); }

  /// Combines `count` elements of all terms of the deal's `sum`-th sum into `destination`.
  /// `piece_of(term)` is where those of that node lie. `destination` may be one of the pieces.
  template <typename PieceOf>
  void combine(size_t sum, void* destination, int64_t count, PieceOf piece_of) {
    const LeafDeal::Sum& order = deal_.sums()[sum];
    terms_.resize(order.terms.size());
    for (size_t i = 0; i < terms_.size(); ++i) {
      terms_[i] = piece_of(order.terms[i]);
    }
    reduce({.data = terms_.data(),
            .merges = order.merges.data(),
            .count = static_cast<int>(terms_.size()),
            .divisor = deal_.leaves()},
           destination,
           count,
           dtype_,
           op_);
  }

 private:
  const LeafDeal& deal_;
  const DType dtype_;
  const ReduceOp op_;
  std::vector<const void*> terms_{};  ///< kept between two pieces
};

}  // namespace argosy::transport
