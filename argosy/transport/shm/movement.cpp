/// Collectives that move bytes and change none.
#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/log.h"
#include "argosy/transport/bytes.h"
#include "argosy/transport/shm/shm_transport.h"

namespace argosy::transport {
namespace {

int64_t rounds_for(int64_t bytes, int64_t per_round) {
  return std::max<int64_t>(1, (bytes + per_round - 1) / per_round);
}

/// The i-th piece of `bytes` bytes, cut into pieces of `piece`.
struct Piece {
  int64_t offset;
  int64_t bytes;
  Piece(int64_t i, int64_t piece, int64_t all)
      : offset(std::min(i * piece, all)), bytes(std::min(piece, all - offset)) {}
};

}  // namespace

void Shm::do_barrier(const Deadline& deadline) {
  exchange(
      1, kAll, [](auto, auto*) {}, [](auto, auto, auto*) {}, deadline);
}

/// Whether it went well on every rank.
bool Shm::all_well(const Status& mine, const Deadline& deadline) {
  if (!mine.ok()) {
    log::warn("[transport.shm] no memory is shared: {}", mine.failure().what);
  }
  bool all = mine.ok();
  exchange(
      1,
      kAll,
      [&](auto, std::byte* slot) { *slot = std::byte{mine.ok()}; },
      [&](auto, auto, const std::byte* slot) { all = all && *slot != std::byte{0}; },
      deadline);
  return all;
}

std::shared_ptr<SharedBlock> Shm::do_share(size_t bytes, const Deadline& deadline) {
  Blocks& blocks = neighbours_->blocks;
  if (!all_well(rank() == 0 ? blocks.make_room(bytes) : Status(), deadline)) {
    return nullptr;
  }
  Result<std::shared_ptr<SharedBlock>> block = blocks.add(bytes);
  const bool all = all_well(block.ok() ? Status() : Status(block.failure()), deadline);
  return all ? *std::move(block) : nullptr;
}

void Shm::do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) {
  exchange(
      rounds_for(bytes, kSlotBytes),
      rank() == root ? kNobody : root,
      [&](int64_t i, std::byte* slot) {
        if (rank() == root) {
          const Piece piece(i, kSlotBytes, bytes);
          copy_bytes(slot, at(data, piece.offset), piece.bytes);
        }
      },
      [&](int /*from*/, int64_t i, const std::byte* slot) {
        const Piece piece(i, kSlotBytes, bytes);
        copy_bytes(at(data, piece.offset), slot, piece.bytes);
      },
      deadline);
}

void Shm::do_all_gather(const void* input,
                        void* output,
                        const Parts& parts,
                        const Deadline& deadline) {
  const int64_t longest = *std::ranges::max_element(parts.bytes);
  const auto part = [&](int of, int64_t i) {
    return Piece(i, kSlotBytes, parts.bytes[static_cast<size_t>(of)]);
  };
  exchange(
      rounds_for(longest, kSlotBytes),
      kAll,
      [&](int64_t i, std::byte* slot) {
        const Piece piece = part(rank(), i);
        copy_bytes(slot, at(input, piece.offset), piece.bytes);
      },
      [&](int from, int64_t i, const std::byte* slot) {
        const Piece piece = part(from, i);
        const int64_t start = parts.offset[static_cast<size_t>(from)];
        copy_bytes(at(output, start + piece.offset), slot, piece.bytes);
      },
      deadline);
}

void Shm::do_gather(
    const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) {
  exchange(
      rounds_for(bytes, kSlotBytes),
      rank() == root ? kAll : kNobody,
      [&](int64_t i, std::byte* slot) {
        const Piece piece(i, kSlotBytes, bytes);
        copy_bytes(slot, at(input, piece.offset), rank() == root ? 0 : piece.bytes);
      },
      [&](int from, int64_t i, const std::byte* slot) {
        const Piece piece(i, kSlotBytes, bytes);
        copy_bytes(at(output, from * bytes + piece.offset), slot, piece.bytes);
      },
      deadline);
}

/// The root's slot holds a piece for each rank.
void Shm::do_scatter(
    const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) {
  const int64_t per_rank = piece_bytes(1);
  exchange(
      rounds_for(bytes, per_rank),
      rank() == root ? kNobody : root,
      [&](int64_t i, std::byte* slot) {
        const Piece piece(i, per_rank, bytes);
        for (int to = 0; rank() == root && to < size(); ++to) {
          copy_bytes(slot + to * per_rank,
                     at(input, to * bytes + piece.offset),
                     to == root ? 0 : piece.bytes);
        }
      },
      [&](int /*from*/, int64_t i, const std::byte* slot) {
        const Piece piece(i, per_rank, bytes);
        copy_bytes(at(output, piece.offset), slot + rank() * per_rank, piece.bytes);
      },
      deadline);
}

/// In the first round each rank says how many bytes it sends to whom, from which all know how many
/// rounds follow; in those its slot holds a piece for each rank.
void Shm::do_all_to_all(const void* input,
                        const Parts& sends,
                        void* output,
                        const Parts& receives,
                        const Deadline& deadline) {
  const auto me = static_cast<size_t>(rank());
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
        if (theirs[me] != receives.bytes[static_cast<size_t>(from)]) {
          differ = fmt::format("{} sends {} B, but {} expects {} B of it",
                               names().one(from),
                               theirs[me],
                               names().one(rank()),
                               receives.bytes[static_cast<size_t>(from)]);
        }
      },
      deadline);
  if (!differ.empty()) {
    throw Mismatch{differ};
  }
  if (longest == 0) {
    return;
  }
  const int64_t per_rank = piece_bytes(1);
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
                   slot + rank() * per_rank,
                   piece.bytes);
      },
      deadline);
}

}  // namespace argosy::transport
