/// all_reduce, reduce and reduce_scatter over Gloo's connections, in rank order.
#include <gloo/allreduce.h>

#include <utility>

#include "argosy/transport/gloo/gloo_transport.h"
#include "argosy/transport/gloo/no_sigpipe.h"
#include "argosy/transport/reduce.h"
#include "argosy/transport/reduction.h"

namespace argosy::transport {
namespace {

/// Up to here every rank sends all it has to every other and reduces by itself: one round trip
/// instead of two.
constexpr int64_t kDirectBytes = 32 << 10;

}  // namespace

void Gloo::do_all_reduce(
    void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) {
  const auto element = static_cast<int64_t>(size_of(dtype));
  if (algorithm_ == GlooAlgorithm::kRing) {
    ring(data, count, dtype, op, deadline);
  } else if (count * element <= kDirectBytes) {
    direct(data, data, count, dtype, op, deadline);
  } else {
    const auto segments = divide(count, element);
    const Segment& mine = segments[static_cast<size_t>(rank())];
    reduce_segments(data,
                    at(data, mine.begin * element),
                    segments,
                    dtype,
                    op,
                    deadline,
                    Spread{.to_all = true, .data = data});
  }
}

void Gloo::do_reduce(
    void* data, int64_t count, DType dtype, ReduceOp op, int root, const Deadline& deadline) {
  const auto element = static_cast<int64_t>(size_of(dtype));
  const auto segments = divide(count, element);
  const Segment& mine = segments[static_cast<size_t>(rank())];
  // Only the root's data may change, so the others reduce into memory of their own.
  std::vector<std::byte> own(
      rank() == root ? 0 : static_cast<size_t>((mine.end - mine.begin) * element));
  reduce_segments(data,
                  rank() == root ? at(data, mine.begin * element) : own.data(),
                  segments,
                  dtype,
                  op,
                  deadline,
                  Spread{.root = root, .data = data});
}

void Gloo::do_reduce_scatter(const void* input,
                             void* output,
                             int64_t count,
                             DType dtype,
                             ReduceOp op,
                             const Deadline& deadline) {
  const int64_t block = elements_per_block(static_cast<int64_t>(size_of(dtype)));
  std::vector<Segment> segments;
  for (int r = 0; r < size(); ++r) {
    segments.push_back({r * count, (r + 1) * count, block});
  }
  reduce_segments(input, output, segments, dtype, op, deadline, Spread{});
}

/// Equal shares for all ranks; the last ones may be shorter or empty.
std::vector<Segment> Gloo::divide(int64_t count, int64_t element) const {
  const int64_t share = (count + size() - 1) / size();
  std::vector<Segment> segments;
  for (int r = 0; r < size(); ++r) {
    segments.push_back({std::min(count, r * share),
                        std::min(count, (r + 1) * share),
                        elements_per_block(element)});
  }
  return segments;
}

std::byte* Gloo::scratch(int64_t bytes) {
  if (static_cast<int64_t>(scratch_.size()) < bytes) {
    scratch_.resize(static_cast<size_t>(bytes));
  }
  return scratch_.data();
}

/// Everything to everybody, then each rank reduces all of it.
void Gloo::direct(const void* input,
                  void* output,
                  int64_t count,
                  DType dtype,
                  ReduceOp op_kind,
                  const Deadline& deadline) {
  const uint32_t op = slot_of_call();
  const int64_t bytes = count * static_cast<int64_t>(size_of(dtype));
  std::byte* memory = scratch(size() * bytes);
  std::vector<Mesh::Pending> pending;
  for_each_peer(
      [&](int peer) { add(pending, receive(op, 0, peer, memory + peer * bytes, bytes)); });
  for_each_peer([&](int peer) { add(pending, transmit(op, 0, peer, input, bytes)); });
  mesh_->wait(pending, deadline);
  Reduction(size(), dtype, op_kind).combine(output, count, [&](int r) {
    return r == rank() ? static_cast<const std::byte*>(input) : memory + r * bytes;
  });
}

/// Each rank receives its segment from all others, reduces it in rank order block by block, and
/// hands each block on at once.
///
/// A block of another's segment arrives where this rank's own data was sent from; it cannot come
/// before that data has left, because it is made from it.
void Gloo::reduce_segments(const void* input,
                           void* result,
                           const std::vector<Segment>& segments,
                           DType dtype,
                           ReduceOp op_kind,
                           const Deadline& deadline,
                           const Spread& spread) {
  const uint32_t op = slot_of_call();
  const auto element = static_cast<int64_t>(size_of(dtype));
  const Segment& mine = segments[static_cast<size_t>(rank())];
  const int64_t block_bytes = std::min(mine.block, mine.end - mine.begin) * element;
  const int64_t window = std::min(kWindow, mine.blocks());
  std::byte* memory = scratch(window * size() * block_bytes);
  const auto place = [&](int64_t i, int peer) {
    return memory + ((i % kWindow) * size() + peer) * block_bytes;
  };

  std::vector<std::vector<Mesh::Pending>> arriving(static_cast<size_t>(mine.blocks()));
  const auto expect = [&](int64_t i) {
    for_each_peer([&](int peer) {
      add(arriving[static_cast<size_t>(i)],
          receive(op, 0, peer, place(i, peer), mine.length(i) * element));
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
    for_each_peer([&](int peer) {
      const Segment& theirs = segments[static_cast<size_t>(peer)];
      if (i >= theirs.blocks()) {
        return;
      }
      if (spread.to_all || spread.root == rank()) {
        add(pending,
            receive(op,
                    1,
                    peer,
                    at(spread.data, theirs.start(i) * element),
                    theirs.length(i) * element));
      }
      add(pending,
          transmit(op, 0, peer, at(input, theirs.start(i) * element), theirs.length(i) * element));
    });
  }

  Reduction reduction(size(), dtype, op_kind);
  for (int64_t i = 0; i < mine.blocks(); ++i) {
    mesh_->wait(arriving[static_cast<size_t>(i)], deadline);
    std::byte* reduced = at(result, (mine.start(i) - mine.begin) * element);
    reduction.combine(reduced, mine.length(i), [&](int r) -> const std::byte* {
      return r == rank() ? at(input, mine.start(i) * element) : place(i, r);
    });
    if (i + kWindow < mine.blocks()) {
      expect(i + kWindow);
    }
    const int64_t bytes = mine.length(i) * element;
    if (spread.to_all) {
      for_each_peer([&](int peer) { add(pending, transmit(op, 1, peer, reduced, bytes)); });
    } else if (spread.root >= 0 && spread.root != rank()) {
      add(pending, transmit(op, 1, spread.root, reduced, bytes));
    }
  }
  mesh_->wait(pending, deadline);
}

/// Gloo's ring; the average is divided at the end, in place.
void Gloo::ring(void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) {
  ::gloo::AllreduceOptions options(mesh_->context());
  const ReduceOp step = op == ReduceOp::kAvg ? ReduceOp::kSum : op;
  const size_t element = size_of(dtype);
  options.setReduceFunction([=](void* to, const void* a, const void* b, size_t n) {
    const void* sources[] = {a, b};
    transport::reduce(sources, to, static_cast<int64_t>(n), dtype, step);
  });
  const auto n = static_cast<size_t>(count);
  switch (element) {
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
  options.setTag(slot_of_call());
  options.setTimeout(std::max(deadline.remaining(), std::chrono::milliseconds(1)));
  const NoSigpipe quiet;
  try {
    ::gloo::allreduce(options);
  } catch (const std::exception& e) {
    if (deadline.expired()) {
      throw LinkTimeout{};
    }
    throw LinkBroken{-1, e.what()};
  }
  if (op == ReduceOp::kAvg) {
    divide_by_size(data, count, dtype);
  }
}

void Gloo::divide_by_size(void* data, int64_t count, DType dtype) {
  // The average of the sum and n - 1 times nothing.
  const std::vector<std::byte> zeros(static_cast<size_t>(count) * size_of(dtype));
  std::vector<const void*> sources(static_cast<size_t>(size()), zeros.data());
  sources[0] = data;
  transport::reduce(sources, data, count, dtype, ReduceOp::kAvg);
}

}  // namespace argosy::transport
