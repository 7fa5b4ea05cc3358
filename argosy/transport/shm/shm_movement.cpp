#include "argosy/transport/shm/shm_movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "argosy/base/log.h"
#include "argosy/transport/bytes.h"
#include "argosy/transport/link_errors.h"

namespace argosy::transport {
namespace {

int64_t rounds_for(int64_t bytes, int64_t per_round) {
  return std::max<int64_t>(1, (bytes + per_round - 1) / per_round);
}

/// The i-th piece of `all` bytes that are cut into pieces of `piece` bytes.
struct Piece {
  int64_t offset;
  int64_t bytes;
  Piece(int64_t i, int64_t piece, int64_t all)
      : offset(std::min(i * piece, all)), bytes(std::min(piece, all - offset)) {}
};

}  // namespace

void ShmMovement::exchange(int64_t rounds,
                           int from,
                           const std::function<void(int64_t, std::byte*)>& put,
                           const std::function<void(int, int64_t, const std::byte*)>& take) {
  const int64_t first = taken_;
  taken_ += rounds;
  const auto publish = [&](int64_t i) {
    put(i, rounds_.begin(first + i));
    rounds_.publish(first + i);
  };
  publish(0);
  for (int64_t i = 0; i < rounds; ++i) {
    if (i + 1 < rounds) {
      publish(i + 1);  // the others copy it while this rank copies theirs
    }
    for (int k = 1; k < rounds_.size(); ++k) {
      const int peer = (rounds_.rank() + k) % rounds_.size();
      if (from == kAll || from == peer) {
        rounds_.await(peer, first + i);
        take(peer, i, rounds_.slot(peer, first + i));
      }
    }
    rounds_.end(first + i);
  }
}

void ShmMovement::barrier() {
  exchange(
      1, kAll, [](auto, auto*) {}, [](auto, auto, auto*) {});
}

/// Whether `mine` is a success on every rank.
bool ShmMovement::all_well(const Status& mine) {
  if (!mine.ok()) {
    log::warn("[transport.shm] no memory is shared: {}", mine.failure().what);
  }
  bool all = mine.ok();
  exchange(
      1,
      kAll,
      [&](auto, std::byte* slot) { *slot = std::byte{mine.ok()}; },
      [&](auto, auto, const std::byte* slot) { all = all && *slot != std::byte{0}; });
  return all;
}

std::shared_ptr<SharedBlock> ShmMovement::share(size_t bytes, Blocks& blocks) {
  if (!all_well(rounds_.rank() == 0 ? blocks.make_room(bytes) : Status())) {
    return nullptr;
  }
  Result<std::shared_ptr<SharedBlock>> block = blocks.add(bytes);
  const bool all = all_well(block.ok() ? Status() : Status(block.failure()));
  return all ? *std::move(block) : nullptr;
}

void ShmMovement::broadcast(void* data, int64_t bytes, int root) {
  exchange(
      rounds_for(bytes, kSlotBytes),
      rounds_.rank() == root ? kNobody : root,
      [&](int64_t i, std::byte* slot) {
        if (rounds_.rank() == root) {
          const Piece piece(i, kSlotBytes, bytes);
          copy_bytes(slot, at(data, piece.offset), piece.bytes);
        }
      },
      [&](int /*from*/, int64_t i, const std::byte* slot) {
        const Piece piece(i, kSlotBytes, bytes);
        copy_bytes(at(data, piece.offset), slot, piece.bytes);
      });
}

void ShmMovement::all_gather(const void* input, void* output, const Parts& parts) {
  const int64_t longest = *std::ranges::max_element(parts.bytes);
  const auto part = [&](int of, int64_t i) {
    return Piece(i, kSlotBytes, parts.bytes[static_cast<size_t>(of)]);
  };
  exchange(
      rounds_for(longest, kSlotBytes),
      kAll,
      [&](int64_t i, std::byte* slot) {
        const Piece piece = part(rounds_.rank(), i);
        copy_bytes(slot, at(input, piece.offset), piece.bytes);
      },
      [&](int from, int64_t i, const std::byte* slot) {
        const Piece piece = part(from, i);
        const int64_t start = parts.offset[static_cast<size_t>(from)];
        copy_bytes(at(output, start + piece.offset), slot, piece.bytes);
      });
}

void ShmMovement::gather(const void* input, void* output, int64_t bytes, int root) {
  exchange(
      rounds_for(bytes, kSlotBytes),
      rounds_.rank() == root ? kAll : kNobody,
      [&](int64_t i, std::byte* slot) {
        const Piece piece(i, kSlotBytes, bytes);
        copy_bytes(slot, at(input, piece.offset), rounds_.rank() == root ? 0 : piece.bytes);
      },
      [&](int from, int64_t i, const std::byte* slot) {
        const Piece piece(i, kSlotBytes, bytes);
        copy_bytes(at(output, from * bytes + piece.offset), slot, piece.bytes);
      });
}

/// The root's slot holds a piece for each rank.
void ShmMovement::scatter(const void* input, void* output, int64_t bytes, int root) {
  const int64_t per_rank = slot_share(rounds_.size(), 1);
  exchange(
      rounds_for(bytes, per_rank),
      rounds_.rank() == root ? kNobody : root,
      [&](int64_t i, std::byte* slot) {
        const Piece piece(i, per_rank, bytes);
        for (int to = 0; rounds_.rank() == root && to < rounds_.size(); ++to) {
          copy_bytes(slot + to * per_rank,
                     at(input, to * bytes + piece.offset),
                     to == root ? 0 : piece.bytes);
        }
      },
      [&](int /*from*/, int64_t i, const std::byte* slot) {
        const Piece piece(i, per_rank, bytes);
        copy_bytes(at(output, piece.offset), slot + rounds_.rank() * per_rank, piece.bytes);
      });
}

/// In a round of its own each rank says how many bytes it sends to whom. Returns the length of the
/// longest part that any rank sends.
int64_t ShmMovement::longest_part(const Parts& sends, const Parts& receives) {
  int64_t longest = *std::ranges::max_element(sends.bytes);
  std::string differ;
  exchange(
      1,
      kAll,
      [&](int64_t /*i*/, std::byte* slot) {
        copy_bytes(slot, sends.bytes.data(), std::ssize(sends.bytes) * int64_t{sizeof(int64_t)});
      },
      [&](int from, int64_t /*i*/, const std::byte* slot) {
        std::vector<int64_t> theirs(sends.bytes.size());
        copy_bytes(theirs.data(), slot, std::ssize(theirs) * int64_t{sizeof(int64_t)});
        longest = std::max(longest, *std::ranges::max_element(theirs));
        const int64_t sent = theirs[static_cast<size_t>(rounds_.rank())];
        const int64_t expected = receives.bytes[static_cast<size_t>(from)];
        if (sent != expected) {
          differ = fmt::format("{} sends {} B, but {} expects {} B of it",
                               rounds_.names().one(from),
                               sent,
                               rounds_.names().one(rounds_.rank()),
                               expected);
        }
      });
  if (!differ.empty()) {
    throw Mismatch{differ};
  }
  return longest;
}

/// After all know the longest part, each slot holds a piece for each rank.
void ShmMovement::all_to_all(const void* input,
                             const Parts& sends,
                             void* output,
                             const Parts& receives) {
  const auto me = static_cast<size_t>(rounds_.rank());
  const int64_t longest = longest_part(sends, receives);
  if (longest == 0) {
    return;
  }
  const int64_t per_rank = slot_share(rounds_.size(), 1);
  exchange(
      rounds_for(longest, per_rank),
      kAll,
      [&](int64_t i, std::byte* slot) {
        for (size_t to = 0; to < sends.bytes.size(); ++to) {
          const Piece piece(i, per_rank, sends.bytes[to]);
          copy_bytes(slot + static_cast<int64_t>(to) * per_rank,
                     at(input, sends.offset[to] + piece.offset),
                     to == me ? 0 : piece.bytes);
        }
      },
      [&](int from, int64_t i, const std::byte* slot) {
        const auto source = static_cast<size_t>(from);
        const Piece piece(i, per_rank, receives.bytes[source]);
        copy_bytes(at(output, receives.offset[source] + piece.offset),
                   slot + rounds_.rank() * per_rank,
                   piece.bytes);
      });
}

}  // namespace argosy::transport
