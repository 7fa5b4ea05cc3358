#include "argosy/transport/shm/shm_reduction.h"

#include <algorithm>
#include <vector>

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

void ShmReduction::all_reduce(void* data, int64_t count) {
  if (bytes_of(count) * rounds_.size() <= kAtOnceBytes) {
    at_once(data, count);
    return;
  }
  const Blocks::Place place = blocks_.find(data, static_cast<size_t>(bytes_of(count)));
  rounds_.set_place(place.block, place.offset);
  if (place.block == 0 || !in_place(data, count, place.offset)) {
    in_shares(data, count, kAll);
  }
}

void ShmReduction::reduce(void* data, int64_t count, int root) {
  in_shares(data, count, root);
}

void ShmReduction::at_once(void* data, int64_t count) {
  copy_bytes(rounds_.begin(0), data, bytes_of(count));
  rounds_.publish(0);
  rounds_.await_all(0);
  reduction_.combine(data, count, [&](int rank) -> const void* {
    return rank == rounds_.rank() ? data : rounds_.slot(rank, 0);
  });
  rounds_.end(0);
}

/// Each rank combines its share where the data lies, and writes the result there for all. `offset`:
/// of this rank's data in its block. Returns false, on every rank that has its data in a block,
/// when one rank has it elsewhere. The round is then the first one of in_shares().
bool ShmReduction::in_place(void* data, int64_t count, uint64_t offset) {
  open({.round = 0,
        .data = static_cast<std::byte*>(data),
        .count = std::min(count, elements_of_a_slot())});
  rounds_.await_all(0);
  if (!all_in_one_block(bytes_of(count))) {
    return false;
  }
  combine_in_place(static_cast<std::byte*>(data) - offset, count);
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
    reduction_.combine(sum, length, [&](int rank) { return place(rank, i); });
    for (int rank = 0; rank < rounds_.size(); ++rank) {
      copy_bytes(place(rank, i), sum, rank == rounds_.rank() ? 0 : bytes_of(length));
    }
  }
}

/// Three rounds are in flight at once. This rank fills its slot for one round while the others
/// combine the round before, and it reads their shares of the round before that.
void ShmReduction::in_shares(void* data, int64_t count, int root) {
  const int64_t per_round = elements_of_a_slot();
  const int64_t rounds = (count + per_round - 1) / per_round;
  const auto chunk = [&](int64_t round) {
    return Chunk{.round = round,
                 .data = at(data, bytes_of(round * per_round)),
                 .count = std::min(per_round, count - round * per_round)};
  };
  for (int64_t i = 0; i < rounds + 2; ++i) {
    if (i < rounds && i >= opened_) {
      open(chunk(i));
    }
    if (const int64_t j = i - 1; j >= 0 && j < rounds) {
      rounds_.await_all(j);
      combine_share(chunk(j), root);
    }
    if (const int64_t j = i - 2; j >= 0) {
      if (root == kAll || root == rounds_.rank()) {
        take_shares(chunk(j));
      }
      rounds_.end(j);
    }
  }
}

/// Publishes what the other ranks combine of this rank's chunk: all but its own share.
void ShmReduction::open(const Chunk& chunk) {
  std::byte* const slot = rounds_.begin(chunk.round);
  const Share mine = share_of(rounds_.rank(), chunk.count);
  const int64_t end = bytes_of(mine.end);
  copy_bytes(slot, chunk.data, bytes_of(mine.begin));
  copy_bytes(slot + end, chunk.data + end, bytes_of(chunk.count) - end);
  rounds_.publish(chunk.round);
  opened_ = chunk.round + 1;
}

/// Combines this rank's share of a chunk: into the chunk where this rank takes the result, and for
/// the others to read.
void ShmReduction::combine_share(const Chunk& chunk, int root) {
  const Share share = share_of(rounds_.rank(), chunk.count);
  const int64_t offset = bytes_of(share.begin);
  const int64_t count = share.end - share.begin;
  if (count > 0) {
    const auto piece_of = [&](int rank) {
      return (rank == rounds_.rank() ? chunk.data : rounds_.slot(rank, chunk.round)) + offset;
    };
    if (root == rounds_.rank()) {
      reduction_.combine(chunk.data + offset, count, piece_of);
    } else {
      std::byte* const result = rounds_.own_result(chunk.round);
      reduction_.combine(result, count, piece_of);
      copy_bytes(chunk.data + offset, result, root == kAll ? bytes_of(count) : 0);
    }
  }
  rounds_.publish_result(chunk.round);
}

void ShmReduction::take_shares(const Chunk& chunk) {
  for (int k = 1; k < rounds_.size(); ++k) {
    const int peer = (rounds_.rank() + k) % rounds_.size();
    const Share share = share_of(peer, chunk.count);
    copy_bytes(chunk.data + bytes_of(share.begin),
               rounds_.await_result(peer, chunk.round),
               bytes_of(share.end - share.begin));
  }
}

/// Each slot holds a piece of every rank's part; each rank combines its own.
void ShmReduction::reduce_scatter(const void* input, void* output, int64_t count) {
  const int64_t piece_bytes = slot_share(rounds_.size(), reduction_.element_bytes());
  const int64_t per_round = piece_bytes / reduction_.element_bytes();
  const int64_t rounds = (count + per_round - 1) / per_round;
  const auto part = [&](int rank, int64_t round) {
    return at(input, bytes_of(rank * count + round * per_round));
  };
  const auto length = [&](int64_t round) { return std::min(per_round, count - round * per_round); };
  for (int64_t i = 0; i < rounds + 1; ++i) {
    if (i < rounds) {
      std::byte* const slot = rounds_.begin(i);
      for (int to = 0; to < rounds_.size(); ++to) {
        copy_bytes(
            slot + to * piece_bytes, part(to, i), to == rounds_.rank() ? 0 : bytes_of(length(i)));
      }
      rounds_.publish(i);
    }
    if (const int64_t j = i - 1; j >= 0) {
      rounds_.await_all(j);
      reduction_.combine(at(output, bytes_of(j * per_round)), length(j), [&](int rank) {
        return rank == rounds_.rank() ? part(rank, j)
                                      : rounds_.slot(rank, j) + rounds_.rank() * piece_bytes;
      });
      rounds_.end(j);
    }
  }
}

}  // namespace argosy::transport
