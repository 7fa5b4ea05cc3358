#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/transport/device_queue.h"
#include "argosy/transport/leaf_deal.h"
#include "argosy/transport/nccl/communicator.h"
#include "argosy/transport/transport.h"

// Internal to the room.
namespace argosy::transport::nccl {

/// The `sum`-th sum of `deal`, whose terms lie at `data`.
inline Terms terms_of(const LeafDeal& deal, size_t sum, const void* const* data) {
  const LeafDeal::Sum& order = deal.sums()[sum];
  return {.data = data,
          .merges = order.merges.data(),
          .count = static_cast<int>(order.terms.size()),
          .divisor = deal.leaves()};
}

/// Queues the `sum`-th sum of `deal`: `count` elements of all its terms into `destination`.
/// `piece_of(term)` is where those of that node lie.
template <typename PieceOf>
void queue_sum(DeviceQueue& queue,
               const LeafDeal& deal,
               size_t sum,
               void* destination,
               int64_t count,
               DType dtype,
               ReduceOp op,
               PieceOf piece_of) {
  std::vector<const void*> data;
  for (const LeafDeal::Term& term : deal.sums()[sum].terms) {
    data.push_back(piece_of(term));
  }
  queue.reduce(terms_of(deal, sum, data.data()), destination, count, dtype, op);
}

/// One reduction between devices in the order of LeafDeal, so with the bits of all transports: each
/// rank gets its share of the elements of all nodes, adds them, and hands its share of the sums on.
/// Everything is queued.
class ExactReduction final {
 public:
  /// Lifetime: refers to all of them.
  ExactReduction(const Library& library,
                 Communicator& communicator,
                 DeviceQueue& queue,
                 int rank,
                 const Deadline& deadline)
      : api_(library.api()),
        communicator_(communicator),
        queue_(queue),
        rank_(rank),
        deadline_(deadline) {}

  void all_reduce(const TreeBuffers& data, int64_t count, DType dtype, ReduceOp op);
  void reduce(const TreeBuffers& data, int64_t count, DType dtype, ReduceOp op, int root);
  void reduce_scatter(const TreeBuffers& data, int64_t count, DType dtype, ReduceOp op);

 private:
  /// The elements that one rank adds.
  struct Share {
    int64_t begin = 0;
    int64_t end = 0;
    [[nodiscard]] int64_t size() const { return end - begin; }
  };
  /// The own share of all nodes of the others.
  struct Gathered {
    std::shared_ptr<void> memory{};
    int64_t bytes_of_node = 0;             ///< from the begin of a node's share to the next's
    std::vector<int64_t> first_of_rank{};  ///< its first node's place, in nodes
  };

  [[nodiscard]] static std::vector<Share> shares(const LeafDeal& deal, int64_t count);
  [[nodiscard]] Gathered exchange(const TreeBuffers& data,
                                  const std::vector<Share>& shares,
                                  DType dtype,
                                  ReduceOp op);
  void combine(const TreeBuffers& data,
               const Gathered& gathered,
               const Share& mine,
               const std::vector<void*>& sums,
               DType dtype,
               ReduceOp op);
  void hand_on(const TreeBuffers& data,
               const std::vector<Share>& shares,
               const std::vector<void*>& sums,
               int64_t element_bytes,
               int root);

  const Api& api_;
  Communicator& communicator_;
  DeviceQueue& queue_;
  const int rank_;
  const Deadline deadline_;
};

}  // namespace argosy::transport::nccl
