#include "argosy/transport/gloo/gloo_reduction.h"

#include <gloo/allreduce.h>

#include <chrono>
#include <exception>

#include "argosy/transport/bytes.h"
#include "argosy/transport/gloo/no_sigpipe.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/reduce.h"

namespace argosy::transport {
namespace {

/// Up to here every rank sends all it has to every other and reduces by itself: one round trip
/// instead of two.
constexpr int64_t kDirectBytes = 32 << 10;
constexpr int64_t kWindow = 3;    ///< blocks per peer that are in memory beside the data
constexpr uint32_t kResults = 1;  ///< the phase in which combined blocks travel

}  // namespace

void GlooReduction::all_reduce(void* data, int64_t count) {
  if (sums_.algorithm == GlooAlgorithm::kRing) {
    ring(data, count);
  } else if (bytes_of(count) <= kDirectBytes) {
    direct(data, count);
  } else {
    const auto segments = divide(count);
    const Segment& mine = segments[static_cast<size_t>(exchange_.rank())];
    in_segments(data, at(data, bytes_of(mine.begin)), segments, {.to = kAll, .data = data});
  }
}

void GlooReduction::reduce(void* data, int64_t count, int root) {
  const bool takes = exchange_.rank() == root;
  const auto segments = divide(count);
  const Segment& mine = segments[static_cast<size_t>(exchange_.rank())];
  // Only the root's data may change, so the others reduce into memory of their own.
  std::vector<std::byte> own(takes ? 0 : static_cast<size_t>(bytes_of(mine.end - mine.begin)));
  in_segments(data,
              takes ? at(data, bytes_of(mine.begin)) : own.data(),
              segments,
              {.to = root, .data = data});
}

void GlooReduction::reduce_scatter(const void* input, void* output, int64_t count) {
  std::vector<Segment> segments;
  for (int r = 0; r < exchange_.size(); ++r) {
    segments.push_back({r * count, (r + 1) * count, elements_of_a_block()});
  }
  in_segments(input, output, segments, {});
}

/// Equal shares for all ranks; the last ones may be shorter or empty.
std::vector<GlooReduction::Segment> GlooReduction::divide(int64_t count) const {
  const int64_t share = (count + exchange_.size() - 1) / exchange_.size();
  std::vector<Segment> segments;
  for (int r = 0; r < exchange_.size(); ++r) {
    segments.push_back(
        {std::min(count, r * share), std::min(count, (r + 1) * share), elements_of_a_block()});
  }
  return segments;
}

std::byte* GlooReduction::scratch(int64_t bytes) {
  if (std::ssize(sums_.scratch) < bytes) {
    sums_.scratch.resize(static_cast<size_t>(bytes));
  }
  return sums_.scratch.data();
}

/// Everything to everybody, then each rank reduces all of it.
void GlooReduction::direct(void* data, int64_t count) {
  const int64_t bytes = bytes_of(count);
  std::byte* memory = scratch(exchange_.size() * bytes);
  exchange_.with_each_peer(
      [&](int peer) {
        return GlooExchange::Incoming{memory + peer * bytes, bytes};
      },
      [&](int /*peer*/) {
        return GlooExchange::Outgoing{data, bytes};
      });
  reduction_.combine(data, count, [&](int r) {
    return r == exchange_.rank() ? static_cast<const std::byte*>(data) : memory + r * bytes;
  });
}

/// Each rank receives its segment from all others, reduces it in rank order block by block, and
/// hands each block on at once.
///
/// A block of another's segment arrives where this rank's own data was sent from; it cannot come
/// before that data has left, because it is made from it.
void GlooReduction::in_segments(const void* input,
                                void* result,
                                const std::vector<Segment>& segments,
                                const Spread& spread) {
  const int rank = exchange_.rank();
  const int size = exchange_.size();
  const Segment& mine = segments[static_cast<size_t>(rank)];
  const int64_t block_bytes = bytes_of(std::min(mine.block, mine.end - mine.begin));
  const int64_t window = std::min(kWindow, mine.blocks());
  std::byte* memory = scratch(window * size * block_bytes);
  const auto place = [&](int64_t i, int peer) {
    return memory + ((i % kWindow) * size + peer) * block_bytes;
  };

  std::vector<std::vector<Mesh::Pending>> arriving(static_cast<size_t>(mine.blocks()));
  const auto expect = [&](int64_t i) {
    exchange_.for_each_peer([&](int peer) {
      arriving[static_cast<size_t>(i)].push_back(
          exchange_.receive(peer, {place(i, peer), bytes_of(mine.length(i))}));
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
      if (spread.to == kAll || spread.to == rank) {
        pending.push_back(exchange_.receive(peer, {at(spread.data, offset), bytes}, kResults));
      }
      pending.push_back(exchange_.send(peer, {at(input, offset), bytes}));
    });
  }

  for (int64_t i = 0; i < mine.blocks(); ++i) {
    exchange_.wait(arriving[static_cast<size_t>(i)]);
    std::byte* reduced = at(result, bytes_of(mine.start(i) - mine.begin));
    reduction_.combine(reduced, mine.length(i), [&](int r) -> const std::byte* {
      return r == rank ? at(input, bytes_of(mine.start(i))) : place(i, r);
    });
    if (i + kWindow < mine.blocks()) {
      expect(i + kWindow);
    }
    const GlooExchange::Outgoing block{reduced, bytes_of(mine.length(i))};
    if (spread.to == kAll) {
      exchange_.for_each_peer(
          [&](int peer) { pending.push_back(exchange_.send(peer, block, kResults)); });
    } else if (spread.to >= 0 && spread.to != rank) {
      pending.push_back(exchange_.send(spread.to, block, kResults));
    }
  }
  exchange_.wait(pending);
}

/// Gloo's ring; the average is divided at the end, in place.
void GlooReduction::ring(void* data, int64_t count) {
  ::gloo::AllreduceOptions options(exchange_.mesh().context());
  const ReduceOp step = op_ == ReduceOp::kAvg ? ReduceOp::kSum : op_;
  options.setReduceFunction(
      [step, dtype = dtype_](void* to, const void* a, const void* b, size_t n) {
        const void* sources[] = {a, b};
        transport::reduce(sources, to, static_cast<int64_t>(n), dtype, step);
      });
  const auto n = static_cast<size_t>(count);
  switch (reduction_.element_bytes()) {
    case 1:
      options.setOutput(static_cast<uint8_t*>(data), n);
      break;
    case 2:
      options.setOutput(static_cast<uint16_t*>(data), n);
      break;
    case 4:
      options.setOutput(static_cast<uint32_t*>(data), n);
      break;
    default:
      options.setOutput(static_cast<uint64_t*>(data), n);
  }
  options.setTag(exchange_.slot());
  options.setTimeout(std::max(exchange_.deadline().remaining(), std::chrono::milliseconds(1)));
  const NoSigpipe quiet;
  try {
    ::gloo::allreduce(options);
  } catch (const std::exception& e) {
    if (exchange_.deadline().expired()) {
      throw LinkTimeout{};
    }
    throw LinkBroken{-1, e.what()};
  }
  if (op_ == ReduceOp::kAvg) {
    divide_by_size(data, count);
  }
}

void GlooReduction::divide_by_size(void* data, int64_t count) {
  // The average of the sum and n - 1 times nothing.
  const std::vector<std::byte> zeros(static_cast<size_t>(bytes_of(count)));
  std::vector<const void*> sources(static_cast<size_t>(exchange_.size()), zeros.data());
  sources[0] = data;
  transport::reduce(sources, data, count, dtype_, ReduceOp::kAvg);
}

}  // namespace argosy::transport
