#include "argosy/transport/shm/shm_reduction.h"

#include <algorithm>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/transport/bytes.h"

namespace argosy::transport {
namespace {

/// Up to this size, over all ranks, each rank combines everything by itself. That takes one wait
/// instead of two.
constexpr int64_t kAtOnceBytes = int64_t{64} << 10U;
/// Shares begin at cache lines.
constexpr int64_t kLine = 64;

}  // namespace

ShmReduction::Share ShmReduction::share_of(int rank, int64_t count) const {
  const int64_t line = kLine / reduction_.element_bytes();
  const int64_t ranks = rounds_.size();
  const int64_t each = ((count + ranks - 1) / ranks + line - 1) / line * line;
  return {std::min(count, rank * each), std::min(count, (rank + 1) * each)};
}

/// A slot has room for the nodes of the rank that brings most, and for all sums.
int64_t ShmReduction::elements_of_a_slot() const {
  const int64_t rows = std::max<int64_t>({1, deal().most_nodes(), std::ssize(deal().sums())});
  const int64_t line = kLine / reduction_.element_bytes();
  const int64_t elements = kSlotBytes / reduction_.element_bytes() / rows / line * line;
  ARGOSY_CHECK(elements > 0, "transport.shm", "ranks of one host bring too many nodes: {}", rows);
  return elements;
}

ShmReduction::Chunk ShmReduction::chunk_of(int64_t round, int64_t count) const {
  const int64_t begin = round * elements_of_a_slot();
  return {.round = round, .begin = begin, .count = std::min(elements_of_a_slot(), count - begin)};
}

void ShmReduction::all_reduce(const TreeBuffers& data, int64_t count) {
  if (bytes_of(count) * rounds_.size() * deal().most_nodes() <= kAtOnceBytes) {
    at_once(data, count);
    return;
  }
  // What lies in a block is added there only where each rank has one node, under the one sum.
  Blocks::Place place;
  if (data.nodes.size() == 1 && data.sums.size() == 1 && data.nodes[0] == data.sums[0]) {
    place = blocks_.find(data.nodes[0], static_cast<size_t>(bytes_of(count)));
  }
  rounds_.set_place(place.block, place.offset);
  if (place.block == 0 || !in_place(data, count, place.offset)) {
    in_shares(data, count, kAll);
  }
}

void ShmReduction::reduce(const TreeBuffers& data, int64_t count, int root) {
  in_shares(data, count, root);
}

void ShmReduction::at_once(const TreeBuffers& data, int64_t count) {
  std::byte* const slot = rounds_.begin(0);
  for (size_t node = 0; node < data.nodes.size(); ++node) {
    copy_bytes(slot + row(node), data.nodes[node], bytes_of(count));
  }
  rounds_.publish(0);
  rounds_.await_all(0);
  for (size_t sum = 0; sum < data.sums.size(); ++sum) {
    reduction_.combine(sum, data.sums[sum], count, [&](const LeafDeal::Term& term) {
      return term.rank == rounds_.rank() ? node_of(data, term) : node_in_slot(term, 0);
    });
  }
  rounds_.end(0);
}

/// Each rank combines its share where the data lies, and writes the result there for all. `offset`:
/// of this rank's data in its block. Returns false, on every rank that has its data in a block,
/// when one rank has it elsewhere. The round is then the first one of in_shares().
bool ShmReduction::in_place(const TreeBuffers& data, int64_t count, uint64_t offset) {
  open(data, chunk_of(0, count));
  rounds_.await_all(0);
  if (!all_in_one_block(bytes_of(count))) {
    return false;
  }
  combine_in_place(static_cast<std::byte*>(data.sums[0]) - offset, count);
  rounds_.publish_result(0);
  rounds_.await_all_results(0);
  rounds_.end(0);
  return true;
}

/// Whether `bytes` bytes of every rank lie in the same block and do not overlap. All ranks answer
/// alike.
bool ShmReduction::all_in_one_block(int64_t bytes) const {
  std::vector<uint64_t> begins;
  for (int rank = 0; rank < rounds_.size(); ++rank) {
    const RoundHeader& header = rounds_.header(rank, 0);
    if (header.block != rounds_.header(0, 0).block) {
      return false;
    }
    begins.push_back(header.offset);
  }
  std::ranges::sort(begins);
  return std::ranges::adjacent_find(begins, [&](uint64_t a, uint64_t b) {
           return b - a < static_cast<uint64_t>(bytes);
         }) == begins.end();
}

void ShmReduction::combine_in_place(std::byte* block, int64_t count) {
  constexpr int64_t kPieceBytes = int64_t{64} << 10U;  // still in the cache when it is copied
  const int64_t piece = kPieceBytes / reduction_.element_bytes();
  const auto place = [&](int rank, int64_t element) {
    return block + rounds_.header(rank, 0).offset + bytes_of(element);
  };
  const Share mine = share_of(rounds_.rank(), count);
  for (int64_t i = mine.begin; i < mine.end; i += piece) {
    const int64_t length = std::min(piece, mine.end - i);
    std::byte* const sum = place(rounds_.rank(), i);
    reduction_.combine(
        0, sum, length, [&](const LeafDeal::Term& term) { return place(term.rank, i); });
    for (int rank = 0; rank < rounds_.size(); ++rank) {
      copy_bytes(place(rank, i), sum, rank == rounds_.rank() ? 0 : bytes_of(length));
    }
  }
}

/// Three rounds are in flight at once. This rank fills its slot for one round while the others
/// combine the round before, and it reads their shares of the round before that.
void ShmReduction::in_shares(const TreeBuffers& data, int64_t count, int root) {
  const int64_t per_round = elements_of_a_slot();
  const int64_t rounds = (count + per_round - 1) / per_round;
  for (int64_t i = 0; i < rounds + 2; ++i) {
    if (i < rounds && i >= opened_) {
      open(data, chunk_of(i, count));
    }
    if (const int64_t j = i - 1; j >= 0 && j < rounds) {
      rounds_.await_all(j);
      combine_share(data, chunk_of(j, count), root);
    }
    if (const int64_t j = i - 2; j >= 0) {
      if (root == kAll || root == rounds_.rank()) {
        take_shares(data, chunk_of(j, count));
      }
      rounds_.end(j);
    }
  }
}

/// Publishes what the other ranks combine of this rank's chunk: all but its own share.
void ShmReduction::open(const TreeBuffers& data, const Chunk& chunk) {
  std::byte* const slot = rounds_.begin(chunk.round);
  const Share mine = share_of(rounds_.rank(), chunk.count);
  const int64_t end = bytes_of(mine.end);
  for (size_t node = 0; node < data.nodes.size(); ++node) {
    const std::byte* const from = at(data.nodes[node], bytes_of(chunk.begin));
    copy_bytes(slot + row(node), from, bytes_of(mine.begin));
    copy_bytes(slot + row(node) + end, from + end, bytes_of(chunk.count) - end);
  }
  rounds_.publish(chunk.round);
  opened_ = chunk.round + 1;
}

/// Combines this rank's share of a chunk: into its sums where this rank takes the result, and for
/// the others to read.
void ShmReduction::combine_share(const TreeBuffers& data, const Chunk& chunk, int root) {
  const Share share = share_of(rounds_.rank(), chunk.count);
  const int64_t offset = bytes_of(share.begin);
  const int64_t count = share.end - share.begin;
  for (size_t sum = 0; count > 0 && sum < deal().sums().size(); ++sum) {
    const auto piece_of = [&](const LeafDeal::Term& term) {
      return offset + (term.rank == rounds_.rank() ? node_of(data, term) + bytes_of(chunk.begin)
                                                   : node_in_slot(term, chunk.round));
    };
    const auto own_sum = [&] { return at(data.sums[sum], bytes_of(chunk.begin) + offset); };
    if (root == rounds_.rank()) {
      reduction_.combine(sum, own_sum(), count, piece_of);
    } else {
      std::byte* const result = rounds_.own_result(chunk.round) + row(sum);
      reduction_.combine(sum, result, count, piece_of);
      if (root == kAll) {
        copy_bytes(own_sum(), result, bytes_of(count));
      }
    }
  }
  rounds_.publish_result(chunk.round);
}

void ShmReduction::take_shares(const TreeBuffers& data, const Chunk& chunk) {
  for (int k = 1; k < rounds_.size(); ++k) {
    const int peer = (rounds_.rank() + k) % rounds_.size();
    const Share share = share_of(peer, chunk.count);
    const std::byte* const result = rounds_.await_result(peer, chunk.round);
    for (size_t sum = 0; sum < data.sums.size(); ++sum) {
      copy_bytes(at(data.sums[sum], bytes_of(chunk.begin + share.begin)),
                 result + row(sum),
                 bytes_of(share.end - share.begin));
    }
  }
}

/// Each slot holds a piece of every rank's part of each node; each rank combines its own.
void ShmReduction::reduce_scatter(const TreeBuffers& data, int64_t count) {
  const int pieces = rounds_.size() * std::max(1, deal().most_nodes());
  const int64_t piece_bytes = slot_share(pieces, reduction_.element_bytes());
  const int64_t per_round = piece_bytes / reduction_.element_bytes();
  const int64_t rounds = (count + per_round - 1) / per_round;
  const auto part = [&](size_t node, int rank, int64_t round) {
    return at(data.nodes[node], bytes_of(rank * count + round * per_round));
  };
  const auto place = [&](size_t node, int rank) {
    return (static_cast<int64_t>(node) * rounds_.size() + rank) * piece_bytes;
  };
  const auto length = [&](int64_t round) { return std::min(per_round, count - round * per_round); };
  for (int64_t i = 0; i < rounds + 1; ++i) {
    if (i < rounds) {
      std::byte* const slot = rounds_.begin(i);
      for (size_t node = 0; node < data.nodes.size(); ++node) {
        for (int to = 0; to < rounds_.size(); ++to) {
          copy_bytes(slot + place(node, to),
                     part(node, to, i),
                     to == rounds_.rank() ? 0 : bytes_of(length(i)));
        }
      }
      rounds_.publish(i);
    }
    if (const int64_t j = i - 1; j >= 0) {
      rounds_.await_all(j);
      for (size_t sum = 0; sum < data.sums.size(); ++sum) {
        std::byte* const result = at(data.sums[sum], bytes_of(j * per_round));
        reduction_.combine(sum, result, length(j), [&](const LeafDeal::Term& term) {
          const auto node = static_cast<size_t>(term.index);
          return term.rank == rounds_.rank()
                     ? part(node, term.rank, j)
                     : rounds_.slot(term.rank, j) + place(node, rounds_.rank());
        });
      }
      rounds_.end(j);
    }
  }
}

}  // namespace argosy::transport
