#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "argosy/os/memory.h"
#include "argosy/transport/call.h"

// Internal to the room: what lies where in the memory that the ranks of one host share.
namespace argosy::transport {

/// Collectives move data in rounds, which are counted over all collectives. In a round each rank
/// fills one slot for the others to read. This many rounds may be in flight.
inline constexpr uint64_t kDepth = 4;
inline constexpr int64_t kSlotBytes = int64_t{256} << 10U;

/// Returns how many bytes of a slot belong to each of `ranks` ranks: a whole number of elements,
/// and of cache lines.
[[nodiscard]] int64_t slot_share(int ranks, int64_t element_bytes);

/// How many rounds a rank's headers stay readable. A rank that reads them may be kDepth rounds
/// ahead of the writer or behind it, so they are kept twice as long as slots.
inline constexpr uint64_t kKeptRounds = 2 * kDepth;
/// How many of its calls a rank keeps: more than can begin after the last round that two ranks both
/// know.
inline constexpr uint64_t kKeptCalls = 4 * kDepth;

/// What a rank says about a round before the others read its slot. One cache line.
struct alignas(64) RoundHeader {
  uint64_t history = 0;  ///< a digest of this call and of all calls before it; ranks compare it
  uint64_t calls = 0;    ///< how many calls came before this one
  // Where the data lies that an all_reduce may add in place.
  uint32_t block = 0;   ///< number of the SharedBlock; 0: the data lies in none
  uint64_t offset = 0;  ///< in that block, in bytes
};

/// Describes one message. The bytes themselves lie in the mail file.
struct Envelope {
  uint32_t tag = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;  ///< in the mail file
};
inline constexpr uint64_t kEnvelopes = 64;
/// The messages from one rank to another that wait, in the order of their sends.
struct Postbox {
  alignas(64) std::atomic<uint64_t> posted;  ///< messages so far; the sender counts
  alignas(64) std::atomic<uint64_t> taken;   ///< messages so far; the receiver counts
  std::array<Envelope, kEnvelopes> envelopes;
};

/// The state of one rank. That rank writes it and the others read it, except for `bell`, which the
/// others ring. All zeros at first.
struct RankPage {
  alignas(64) std::atomic<uint64_t> written;  ///< rounds whose slot this rank has filled
  alignas(64) std::atomic<uint64_t> reduced;  ///< rounds whose share of a sum it has finished
  alignas(64) std::atomic<uint64_t> read;     ///< rounds in which it needs nothing any more
  std::array<uint32_t, kKeptRounds> ended;    ///< for each of those rounds, a part of its history
  alignas(64) std::atomic<uint32_t> bell;     ///< changes when something happened for this rank
  std::atomic<uint32_t> sleepers;             ///< threads of this rank that wait for the bell
  alignas(64) std::atomic<uint32_t> left;     ///< not 0: this rank takes no part any more
  std::array<RoundHeader, kKeptRounds> headers;
  std::array<Call, kKeptCalls> calls;  ///< read only where histories differ
};
static_assert(sizeof(RoundHeader) == 64 && std::is_trivially_copyable_v<Call>);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// A view of the shared memory of one group.
class Segment final {
 public:
  /// The size of the memory for a group of `size` ranks.
  [[nodiscard]] static size_t bytes_for(int size);
  /// Errors: UsageError when `memory` has another size, as of another version of Argosy.
  Segment(os::SharedMemory memory, int size);

  [[nodiscard]] RankPage& page(int rank) const;
  [[nodiscard]] Postbox& postbox(int from, int to) const;
  /// Returns the slot that `rank` fills in `round`, of kSlotBytes.
  [[nodiscard]] std::byte* slot(int rank, uint64_t round) const;
  /// Returns where `rank` leaves its share of the sum of `round`, of kSlotBytes.
  [[nodiscard]] std::byte* result(int rank, uint64_t round) const;

 private:
  os::SharedMemory memory_;
  int size_;
};

}  // namespace argosy::transport
