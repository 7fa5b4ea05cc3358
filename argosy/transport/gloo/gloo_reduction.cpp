#include "argosy/transport/gloo/gloo_reduction.h"

#include "argosy/transport/bytes.h"
#include "argosy/transport/shares.h"

namespace argosy::transport {
namespace {

/// Up to here every rank sends all it has to every other and reduces by itself: one round trip
/// instead of two.
constexpr int64_t kDirectBytes = 32 << 10;
constexpr int64_t kWindow = 3;    ///< blocks per peer that are in memory beside the data
constexpr uint32_t kResults = 1;  ///< the phase in which combined blocks travel

/// Where the data of each rank's nodes lies in memory that has a place for every node.
std::vector<int64_t> first_places(const LeafDeal& deal) {
  std::vector<int64_t> first{0};
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    first.push_back(first.back() + std::ssize(deal.nodes(rank)));
  }
  return first;
}

}  // namespace

void GlooReduction::all_reduce(const TreeBuffers& data, int64_t count) {
  if (bytes_of(count) * deal().most_nodes() <= kDirectBytes) {
    direct(data, count);
  } else {
    in_segments(data, divide(count), kAll);
  }
}

void GlooReduction::reduce(const TreeBuffers& data, int64_t count, int root) {
  in_segments(data, divide(count), root);
}

void GlooReduction::reduce_scatter(const TreeBuffers& data, int64_t count) {
  std::vector<Segment> segments;
  for (int r = 0; r < exchange_.size(); ++r) {
    segments.push_back({r * count, (r + 1) * count, elements_of_a_block()});
  }
  in_segments(data, segments, kNobody);
}

/// Shares that let every rank send as little as can be; some may be empty.
std::vector<GlooReduction::Segment> GlooReduction::divide(int64_t count) const {
  std::vector<Segment> segments;
  int64_t begin = 0;
  for (const int64_t end : ends_of_shares(deal(), count)) {
    segments.push_back({begin, end, elements_of_a_block()});
    begin = end;
  }
  return segments;
}

std::byte* GlooReduction::scratch(int64_t bytes) {
  if (std::ssize(scratch_) < bytes) {
    scratch_.resize(static_cast<size_t>(bytes));
  }
  return scratch_.data();
}

/// Everything to everybody, then each rank reduces all of it.
void GlooReduction::direct(const TreeBuffers& data, int64_t count) {
  const int64_t bytes = bytes_of(count);
  const std::vector<int64_t> first = first_places(deal());
  std::byte* const memory = scratch(first.back() * bytes);
  const auto place = [&](int rank, int node) {
    return memory + (first[static_cast<size_t>(rank)] + node) * bytes;
  };
  std::vector<Mesh::Pending> pending;
  exchange_.for_each_peer([&](int peer) {
    for (int node = 0; node < nodes_of(peer); ++node) {
      pending.push_back(exchange_.receive(peer, {place(peer, node), bytes}));
    }
  });
  exchange_.for_each_peer([&](int peer) {
    for (const void* const node : data.nodes) {
      pending.push_back(exchange_.send(peer, {node, bytes}));
    }
  });
  exchange_.wait(pending);
  for (size_t sum = 0; sum < data.sums.size(); ++sum) {
    reduction_.combine(sum, data.sums[sum], count, [&](const LeafDeal::Term& term) {
      return term.rank == exchange_.rank() ? data.nodes[static_cast<size_t>(term.index)]
                                           : place(term.rank, term.index);
    });
  }
}

/// Each rank receives its segment of all nodes of the others, reduces it block by block, and hands
/// each block on at once: to the rank `to`, to kAll or to kNobody.
///
/// A block of another's segment may arrive where this rank's own node was sent from; it cannot come
/// before that node has left, because it is made from it.
void GlooReduction::in_segments(const TreeBuffers& data,
                                const std::vector<Segment>& segments,
                                int to) {
  const int rank = exchange_.rank();
  const bool takes = to == kAll || to == rank;
  const size_t sums = deal().sums().size();
  const Segment& mine = segments[static_cast<size_t>(rank)];
  const int64_t block_bytes = bytes_of(std::min(mine.block, mine.end - mine.begin));
  const int64_t window = std::min(kWindow, mine.blocks());
  const std::vector<int64_t> first = first_places(deal());
  std::byte* const memory = scratch(window * first.back() * block_bytes);
  const auto place = [&](int64_t i, int peer, int node) {
    return memory +
           ((i % kWindow) * first.back() + first[static_cast<size_t>(peer)] + node) * block_bytes;
  };
  // Only the root's sums are there, so the others reduce into memory of their own.
  const int64_t segment_bytes = bytes_of(mine.end - mine.begin);
  std::vector<std::byte> own(takes || to == kNobody ? 0
                                                    : static_cast<size_t>(segment_bytes) * sums);
  const auto result = [&](size_t sum, int64_t i) {
    const int64_t offset = bytes_of(mine.start(i) - mine.begin);
    if (takes) {
      return at(data.sums[sum], bytes_of(mine.begin) + offset);
    }
    return to == kNobody ? at(data.sums[sum], offset)
                         : own.data() + static_cast<int64_t>(sum) * segment_bytes + offset;
  };

  std::vector<std::vector<Mesh::Pending>> arriving(static_cast<size_t>(mine.blocks()));
  const auto expect = [&](int64_t i) {
    exchange_.for_each_peer([&](int peer) {
      for (int node = 0; node < nodes_of(peer); ++node) {
        arriving[static_cast<size_t>(i)].push_back(
            exchange_.receive(peer, {place(i, peer, node), bytes_of(mine.length(i))}));
      }
    });
  };
  for (int64_t i = 0; i < window; ++i) {
    expect(i);
  }
  std::vector<Mesh::Pending> pending;
  int64_t most_blocks = 0;
  for (const Segment& segment : segments) {
    most_blocks = std::max(most_blocks, segment.blocks());
  }
  for (int64_t i = 0; i < most_blocks; ++i) {
    exchange_.for_each_peer([&](int peer) {
      const Segment& theirs = segments[static_cast<size_t>(peer)];
      if (i >= theirs.blocks()) {
        return;
      }
      const int64_t offset = bytes_of(theirs.start(i));
      const int64_t bytes = bytes_of(theirs.length(i));
      for (size_t sum = 0; takes && sum < sums; ++sum) {
        pending.push_back(exchange_.receive(peer, {at(data.sums[sum], offset), bytes}, kResults));
      }
      for (const void* const node : data.nodes) {
        pending.push_back(exchange_.send(peer, {at(node, offset), bytes}));
      }
    });
  }

  for (int64_t i = 0; i < mine.blocks(); ++i) {
    exchange_.wait(arriving[static_cast<size_t>(i)]);
    for (size_t sum = 0; sum < sums; ++sum) {
      std::byte* const reduced = result(sum, i);
      reduction_.combine(
          sum, reduced, mine.length(i), [&](const LeafDeal::Term& term) -> const std::byte* {
            return term.rank == rank
                       ? at(data.nodes[static_cast<size_t>(term.index)], bytes_of(mine.start(i)))
                       : place(i, term.rank, term.index);
          });
      const GlooExchange::Outgoing block{reduced, bytes_of(mine.length(i))};
      if (to == kAll) {
        exchange_.for_each_peer(
            [&](int peer) { pending.push_back(exchange_.send(peer, block, kResults)); });
      } else if (to >= 0 && to != rank) {
        pending.push_back(exchange_.send(to, block, kResults));
      }
    }
    if (i + kWindow < mine.blocks()) {
      expect(i + kWindow);
    }
  }
  exchange_.wait(pending);
}

}  // namespace argosy::transport
