#include "argosy/transport/nccl/exact.h"

#include <algorithm>

#include "argosy/transport/bytes.h"
#include "argosy/transport/shares.h"

namespace argosy::transport::nccl {
namespace {

constexpr int kToAll = -1;

int64_t bytes_of(DType dtype) {
  return static_cast<int64_t>(size_of(dtype));
}

/// Sums of what begins at whole vectors are faster: shares end there, and so do pieces of memory.
constexpr int64_t kElements = 64;
constexpr int64_t kBytes = 256;

int64_t rounded_up(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<ExactReduction::Share> ExactReduction::shares(const LeafDeal& deal, int64_t count) {
  std::vector<Share> shares;
  int64_t begin = 0;
  for (const int64_t wanted : ends_of_shares(deal, count)) {
    const int64_t end = std::min(count, rounded_up(wanted, kElements));
    shares.push_back({begin, end});
    begin = end;
  }
  return shares;
}

ExactReduction::Gathered ExactReduction::exchange(const TreeBuffers& data,
                                                  const std::vector<Share>& shares,
                                                  DType dtype,
                                                  ReduceOp op) {
  const LeafDeal& deal = data.deal;
  for (size_t sum = 0; sum < deal.sums().size(); ++sum) {
    queue_.prepare(terms_of(deal, sum, nullptr), dtype, op);
  }
  const int64_t element_bytes = bytes_of(dtype);
  const int64_t share = shares[static_cast<size_t>(rank_)].size() * element_bytes;
  Gathered gathered;
  int64_t nodes = 0;
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    gathered.first_of_rank.push_back(nodes);
    nodes += rank == rank_ ? 0 : std::ssize(deal.nodes(rank));
  }
  gathered.bytes_of_node = rounded_up(share, kBytes);
  gathered.memory = queue_.allocate(nodes * gathered.bytes_of_node);
  communicator_.queue_group("ncclSend and ncclRecv", deadline_, [&](const auto& take, Comm comm) {
    for (int peer = 0; peer < deal.ranks(); ++peer) {
      if (peer == rank_) {
        continue;
      }
      const Share& theirs = shares[static_cast<size_t>(peer)];
      const int64_t bytes = theirs.size() * element_bytes;
      for (size_t i = 0; i < data.nodes.size() && bytes > 0; ++i) {
        take(api_.send(at(data.nodes[i], theirs.begin * element_bytes),
                       static_cast<size_t>(bytes),
                       DataType::kInt8,
                       peer,
                       comm,
                       queue_.handle()));
      }
      const int64_t first = gathered.first_of_rank[static_cast<size_t>(peer)];
      for (int64_t i = 0; i < std::ssize(deal.nodes(peer)) && share > 0; ++i) {
        take(api_.recv(at(gathered.memory.get(), (first + i) * gathered.bytes_of_node),
                       static_cast<size_t>(share),
                       DataType::kInt8,
                       peer,
                       comm,
                       queue_.handle()));
      }
    }
  });
  return gathered;
}

void ExactReduction::combine(const TreeBuffers& data,
                             const Gathered& gathered,
                             const Share& mine,
                             const std::vector<void*>& sums,
                             DType dtype,
                             ReduceOp op) {
  const int64_t element_bytes = bytes_of(dtype);
  for (size_t sum = 0; sum < sums.size() && mine.size() > 0; ++sum) {
    const auto piece_of = [&](const LeafDeal::Term& term) -> const void* {
      if (term.rank == rank_) {
        return at(data.nodes[static_cast<size_t>(term.index)], mine.begin * element_bytes);
      }
      const int64_t first = gathered.first_of_rank[static_cast<size_t>(term.rank)];
      return at(gathered.memory.get(), (first + term.index) * gathered.bytes_of_node);
    };
    queue_sum(queue_, data.deal, sum, sums[sum], mine.size(), dtype, op, piece_of);
  }
}

/// `sums`: where the own shares of the sums lie. All shares come to where data.sums says: of all
/// ranks, or of `root`.
void ExactReduction::hand_on(const TreeBuffers& data,
                             const std::vector<Share>& shares,
                             const std::vector<void*>& sums,
                             int64_t element_bytes,
                             int root) {
  const int64_t own = shares[static_cast<size_t>(rank_)].size() * element_bytes;
  communicator_.queue_group("ncclSend and ncclRecv", deadline_, [&](const auto& take, Comm comm) {
    for (int peer = 0; peer < data.deal.ranks(); ++peer) {
      if (peer == rank_) {
        continue;
      }
      const Share& theirs = shares[static_cast<size_t>(peer)];
      const int64_t bytes = theirs.size() * element_bytes;
      for (size_t sum = 0; sum < sums.size(); ++sum) {
        if (own > 0 && (root == kToAll || root == peer)) {
          take(api_.send(
              sums[sum], static_cast<size_t>(own), DataType::kInt8, peer, comm, queue_.handle()));
        }
        if (bytes > 0 && (root == kToAll || root == rank_)) {
          take(api_.recv(at(data.sums[sum], theirs.begin * element_bytes),
                         static_cast<size_t>(bytes),
                         DataType::kInt8,
                         peer,
                         comm,
                         queue_.handle()));
        }
      }
    }
  });
}

void ExactReduction::all_reduce(const TreeBuffers& data, int64_t count, DType dtype, ReduceOp op) {
  const std::vector<Share> all = shares(data.deal, count);
  const Share& mine = all[static_cast<size_t>(rank_)];
  const Gathered gathered = exchange(data, all, dtype, op);
  std::vector<void*> sums;
  for (void* const sum : data.sums) {
    sums.push_back(at(sum, mine.begin * bytes_of(dtype)));
  }
  combine(data, gathered, mine, sums, dtype, op);
  hand_on(data, all, sums, bytes_of(dtype), kToAll);
}

void ExactReduction::reduce(
    const TreeBuffers& data, int64_t count, DType dtype, ReduceOp op, int root) {
  const std::vector<Share> all = shares(data.deal, count);
  const Share& mine = all[static_cast<size_t>(rank_)];
  const int64_t bytes = mine.size() * bytes_of(dtype);
  const Gathered gathered = exchange(data, all, dtype, op);
  // Only the root's sums are there, so the others add into memory of their own.
  const size_t number = data.deal.sums().size();
  const std::shared_ptr<void> own =
      rank_ == root ? nullptr : queue_.allocate(static_cast<int64_t>(number) * bytes);
  std::vector<void*> sums;
  for (size_t sum = 0; sum < number; ++sum) {
    sums.push_back(rank_ == root ? at(data.sums[sum], mine.begin * bytes_of(dtype))
                                 : at(own.get(), static_cast<int64_t>(sum) * bytes));
  }
  combine(data, gathered, mine, sums, dtype, op);
  hand_on(data, all, sums, bytes_of(dtype), root);
}

void ExactReduction::reduce_scatter(const TreeBuffers& data,
                                    int64_t count,
                                    DType dtype,
                                    ReduceOp op) {
  std::vector<Share> all;
  for (int rank = 0; rank < data.deal.ranks(); ++rank) {
    all.push_back({rank * count, (rank + 1) * count});
  }
  const Gathered gathered = exchange(data, all, dtype, op);
  combine(data,
          gathered,
          all[static_cast<size_t>(rank_)],
          {data.sums.begin(), data.sums.end()},
          dtype,
          op);
}

}  // namespace argosy::transport::nccl
