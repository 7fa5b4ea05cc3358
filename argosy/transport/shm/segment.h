#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "argosy/os/memory.h"
#include "argosy/transport/call.h"

// Internal to the room: what the ranks of one host share.
namespace argosy::transport {

/// Collectives move in rounds, counted over all of them; in a round each rank lays at most a slot
/// of data open to the others. So many rounds may be on their way.
inline constexpr uint64_t kDepth = 4;
inline constexpr int64_t kSlotBytes = int64_t{256} << 10U;

/// A rank can be so many rounds ahead of, or behind, another that reads what it left in them: what
/// a round leaves behind its slot is kept twice as long as the slot.
inline constexpr uint64_t kKeptRounds = 2 * kDepth;
/// Of a rank's calls; more than can have begun since the last round that two ranks both know.
inline constexpr uint64_t kKeptCalls = 4 * kDepth;

/// What a rank does in a round. One cache line.
struct alignas(64) RoundHeader {
  uint64_t history = 0;  ///< a digest of this call and all before it: the others compare it
  uint64_t calls = 0;    ///< how many came before it
  // Where the data lies that an all_reduce may sum in place.
  uint32_t block = 0;  ///< 0: in no block
  uint64_t offset = 0;
};

/// Messages from one rank to another wait here, in the order of their sends. The bytes themselves
/// lie in the mail file.
struct Envelope {
  uint32_t tag = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;  ///< in the mail file
};
inline constexpr uint64_t kEnvelopes = 64;
struct Postbox {
  alignas(64) std::atomic<uint64_t> posted;  ///< by the sender
  alignas(64) std::atomic<uint64_t> taken;   ///< by the receiver
  std::array<Envelope, kEnvelopes> envelopes;
};

/// What one rank writes and the others read, all but `bell`, which they ring. Zeros at first.
struct RankPage {
  alignas(64) std::atomic<uint64_t> written;  ///< rounds whose slot it has filled
  alignas(64) std::atomic<uint64_t> reduced;  ///< rounds of which it has summed up its share
  alignas(64) std::atomic<uint64_t> read;     ///< rounds in which it needs nothing any more
  std::array<uint32_t, kKeptRounds> ended;    ///< of each of them, a part of its history
  alignas(64) std::atomic<uint32_t> bell;     ///< changes when something happened that it waits for
  std::atomic<uint32_t> sleepers;             ///< its threads that wait for the bell
  alignas(64) std::atomic<uint32_t> left;     ///< it takes no part any more
  std::array<RoundHeader, kKeptRounds> headers;
  std::array<Call, kKeptCalls> calls;  ///< looked at only where histories differ
};
static_assert(sizeof(RoundHeader) == 64 && std::is_trivially_copyable_v<Call>);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// A view of the shared memory of one group.
class Segment final {
 public:
  [[nodiscard]] static size_t bytes_for(int size);
  Segment(os::SharedMemory memory, int size);

  [[nodiscard]] RankPage& page(int rank) const;
  [[nodiscard]] Postbox& postbox(int from, int to) const;
  /// What `rank` lays open in `round`; the others may read kSlotBytes.
  [[nodiscard]] std::byte* slot(int rank, uint64_t round) const;
  /// What `rank` has made of all slots of `round`: its share of a sum.
  [[nodiscard]] std::byte* result(int rank, uint64_t round) const;

 private:
  os::SharedMemory memory_;
  int size_;
};

}  // namespace argosy::transport
