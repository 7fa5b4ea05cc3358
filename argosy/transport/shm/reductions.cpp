/// Collectives that add: each rank sums up its share of every chunk, in rank order, straight from
/// the others' slots.
#include <algorithm>

#include "argosy/transport/bytes.h"
#include "argosy/transport/reduce.h"
#include "argosy/transport/shm/shm_transport.h"

namespace argosy::transport {
namespace {

/// Below it, each rank adds everything by itself: one round, and no second wait.
constexpr int64_t kAtOnceBytes = int64_t{64} << 10U;  ///< over all ranks
constexpr int64_t kLine = 64;                         ///< shares begin at cache lines

int64_t bytes_of(int64_t count, DType dtype) {
  return count * static_cast<int64_t>(size_of(dtype));
}

}  // namespace

/// So many bytes of a slot belong to each rank, a whole number of elements and of cache lines.
int64_t Shm::piece_bytes(int64_t element) const {
  return kSlotBytes / size() / std::max(kLine, element) * std::max(kLine, element);
}

Shm::Share Shm::share_of(int rank, int64_t length, int64_t element) const {
  const int64_t line = kLine / element;
  const int64_t each = ((length + size() - 1) / size() + line - 1) / line * line;
  return {std::min(length, rank * each), std::min(length, (rank + 1) * each)};
}

void Shm::do_all_reduce(
    void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) {
  const int64_t bytes = bytes_of(count, dtype);
  if (bytes * size() <= kAtOnceBytes) {
    reduce_at_once(data, count, dtype, op, deadline);
    return;
  }
  RoundHeader header = enter();
  const Blocks::Place place = neighbours_->blocks.find(data, static_cast<size_t>(bytes));
  header.block = place.block;
  header.offset = place.offset;
  if (place.block == 0 || !reduce_where_it_lies(header, data, count, dtype, op, deadline)) {
    reduce_in_shares(header, data, count, dtype, op, -1, deadline);
  }
}

/// Whether the data of all ranks lies in the same block, side by side: the same answer on all.
bool Shm::all_in_one_block(uint64_t round, int64_t bytes) const {
  std::vector<uint64_t> begins;
  for (int r = 0; r < size(); ++r) {
    const RoundHeader& header = segment().page(r).headers[round % kKeptRounds];
    if (header.block != segment().page(0).headers[round % kKeptRounds].block) {
      return false;
    }
    begins.push_back(header.offset);
  }
  std::ranges::sort(begins);
  return std::ranges::adjacent_find(begins, [&](uint64_t a, uint64_t b) {
           return b - a < static_cast<uint64_t>(bytes);
         }) == begins.end();
}

/// Each rank sums up its share where the data lies, and writes the result there for all. False, on
/// every rank that asked, when one has its data elsewhere: the round that they have laid open is
/// the first of reduce_in_shares().
bool Shm::reduce_where_it_lies(const RoundHeader& header,
                               void* data,
                               int64_t count,
                               DType dtype,
                               ReduceOp op,
                               const Deadline& deadline) {
  constexpr int64_t kPieceBytes = int64_t{64} << 10U;  // still in the cache when it is copied
  const auto element = static_cast<int64_t>(size_of(dtype));
  const uint64_t round = rounds_;
  open_chunk(round,
             header,
             static_cast<std::byte*>(data),
             std::min(count, kSlotBytes / element),
             element,
             deadline);
  await_all(round, true, deadline);
  if (!all_in_one_block(round, count * element)) {
    return false;
  }
  ++rounds_;
  std::byte* const block = static_cast<std::byte*>(data) - header.offset;
  std::vector<std::byte*> places;
  for (int r = 0; r < size(); ++r) {
    places.push_back(block + segment().page(r).headers[round % kKeptRounds].offset);
  }
  const Share mine = share_of(rank(), count, element);
  std::vector<const void*> sources(places.size());
  for (int64_t i = mine.begin; i < mine.end; i += kPieceBytes / element) {
    const int64_t length = std::min(kPieceBytes / element, mine.end - i);
    std::ranges::transform(
        places, sources.begin(), [&](const std::byte* place) { return place + i * element; });
    std::byte* const sum = places[static_cast<size_t>(rank())] + i * element;
    transport::reduce(sources, sum, length, dtype, op);
    for (int r = 0; r < size(); ++r) {
      copy_bytes(
          places[static_cast<size_t>(r)] + i * element, sum, r == rank() ? 0 : length * element);
    }
  }
  segment().page(rank()).reduced.store(round + 1);
  waiter().ring_all();
  waiter().wait_all(&RankPage::reduced, round + 1, deadline);
  end(round);
  return true;
}

void Shm::do_reduce(
    void* data, int64_t count, DType dtype, ReduceOp op, int root, const Deadline& deadline) {
  reduce_in_shares(enter(), data, count, dtype, op, root, deadline);
}

void Shm::reduce_at_once(
    void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) {
  const RoundHeader header = enter();
  const uint64_t round = rounds_++;
  begin(round, deadline);
  copy_bytes(segment().slot(rank(), round), data, bytes_of(count, dtype));
  publish(round, header);
  await_all(round, true, deadline);
  std::vector<const void*> sources;
  for (int r = 0; r < size(); ++r) {
    sources.push_back(r == rank() ? data : segment().slot(r, round));
  }
  transport::reduce(sources, data, count, dtype, op);
  end(round);
}

/// Lays open what the other ranks sum up of this rank's chunk.
void Shm::open_chunk(uint64_t round,
                     const RoundHeader& header,
                     const std::byte* chunk,
                     int64_t length,
                     int64_t element,
                     const Deadline& deadline) {
  begin(round, deadline);
  const Share mine = share_of(rank(), length, element);
  std::byte* const slot = segment().slot(rank(), round);
  copy_bytes(slot, chunk, mine.begin * element);
  copy_bytes(slot + mine.end * element, chunk + mine.end * element, (length - mine.end) * element);
  publish(round, header);
}

/// Three rounds are on their way at once: this rank fills its slot for one while the others sum up
/// the one before, and reads their shares of the one before that.
void Shm::reduce_in_shares(const RoundHeader& header,
                           void* data,
                           int64_t count,
                           DType dtype,
                           ReduceOp op,
                           int root,
                           const Deadline& deadline) {
  const auto element = static_cast<int64_t>(size_of(dtype));
  const int64_t per_round = kSlotBytes / element;
  const int64_t rounds = (count + per_round - 1) / per_round;
  const uint64_t base = rounds_;
  rounds_ += static_cast<uint64_t>(rounds);
  const auto chunk = [&](int64_t i) {
    return static_cast<std::byte*>(data) + i * per_round * element;
  };
  const auto length = [&](int64_t i) { return std::min(per_round, count - i * per_round); };
  const bool takes = root < 0 || root == rank();
  for (int64_t i = 0; i < rounds + 2; ++i) {
    if (i < rounds && (i > 0 || header.block == 0)) {
      open_chunk(base + static_cast<uint64_t>(i), header, chunk(i), length(i), element, deadline);
    }
    if (const int64_t j = i - 1; j >= 0 && j < rounds) {
      const uint64_t round = base + static_cast<uint64_t>(j);
      await_all(round, j == 0, deadline);
      sum_up(round, chunk(j), length(j), dtype, op, root);
    }
    if (const int64_t j = i - 2; j >= 0) {
      const uint64_t round = base + static_cast<uint64_t>(j);
      if (takes) {
        take_shares(round, chunk(j), length(j), element, deadline);
      }
      end(round);
    }
  }
}

/// This rank's share of a chunk: into `chunk` where it is wanted here, and open to the others.
void Shm::sum_up(
    uint64_t round, std::byte* chunk, int64_t length, DType dtype, ReduceOp op, int root) {
  const auto element = static_cast<int64_t>(size_of(dtype));
  const Share share = share_of(rank(), length, element);
  const int64_t offset = share.begin * element;
  const int64_t count = share.end - share.begin;
  if (count > 0) {
    std::vector<const void*> sources;
    for (int r = 0; r < size(); ++r) {
      sources.push_back(r == rank() ? chunk + offset : segment().slot(r, round) + offset);
    }
    std::byte* const result = segment().result(rank(), round);
    if (root == rank()) {
      transport::reduce(sources, chunk + offset, count, dtype, op);
    } else {
      transport::reduce(sources, result, count, dtype, op);
      copy_bytes(chunk + offset, result, root < 0 ? count * element : 0);
    }
  }
  segment().page(rank()).reduced.store(round + 1);
  waiter().ring_all();
}

void Shm::take_shares(
    uint64_t round, std::byte* chunk, int64_t length, int64_t element, const Deadline& deadline) {
  for (int k = 1; k < size(); ++k) {
    const int peer = (rank() + k) % size();
    const Share share = share_of(peer, length, element);
    waiter().wait(peer, &RankPage::reduced, round + 1, deadline);
    copy_bytes(chunk + share.begin * element,
               segment().result(peer, round),
               (share.end - share.begin) * element);
  }
}

/// Each slot holds a piece of every rank's part; each rank sums up its own.
void Shm::do_reduce_scatter(const void* input,
                            void* output,
                            int64_t count,
                            DType dtype,
                            ReduceOp op,
                            const Deadline& deadline) {
  const auto element = static_cast<int64_t>(size_of(dtype));
  const int64_t per_rank = piece_bytes(element);
  const int64_t per_round = per_rank / element;
  const int64_t rounds = (count + per_round - 1) / per_round;
  const RoundHeader header = enter();
  const uint64_t base = rounds_;
  rounds_ += static_cast<uint64_t>(rounds);
  const auto part = [&](int of, int64_t i) {
    return static_cast<const std::byte*>(input) + (of * count + i * per_round) * element;
  };
  const auto length = [&](int64_t i) { return std::min(per_round, count - i * per_round); };
  for (int64_t i = 0; i < rounds + 1; ++i) {
    if (i < rounds) {
      const uint64_t round = base + static_cast<uint64_t>(i);
      begin(round, deadline);
      for (int to = 0; to < size(); ++to) {
        copy_bytes(segment().slot(rank(), round) + to * per_rank,
                   part(to, i),
                   to == rank() ? 0 : length(i) * element);
      }
      publish(round, header);
    }
    if (const int64_t j = i - 1; j >= 0) {
      const uint64_t round = base + static_cast<uint64_t>(j);
      await_all(round, j == 0, deadline);
      std::vector<const void*> sources;
      for (int r = 0; r < size(); ++r) {
        const std::byte* const theirs = segment().slot(r, round) + rank() * per_rank;
        sources.push_back(r == rank() ? part(rank(), j) : theirs);
      }
      std::byte* const sums = static_cast<std::byte*>(output) + j * per_round * element;
      transport::reduce(sources, sums, length(j), dtype, op);
      end(round);
    }
  }
}

}  // namespace argosy::transport
