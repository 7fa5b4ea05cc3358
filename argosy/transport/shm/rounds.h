#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/transport/call.h"
#include "argosy/transport/rank_names.h"
#include "argosy/transport/shm/segment.h"
#include "argosy/transport/shm/waiter.h"

// Internal to the room: how the ranks of a host lay data open to each other, and how they find out
// that they called different operations.
namespace argosy::transport {

/// The rounds of all collectives of one rank, in the order of the calls.
///
/// Each round carries a digest of its call and of all calls before it. A rank that reads another
/// rank's slot compares digests first. So ranks whose calls do not match never take each other's
/// data. A rank that reads from nobody (the root of a broadcast) compares later, when it needs a
/// slot again: the slots are kDepth, so it is at most that many rounds late.
///
/// Not thread-safe: one collective runs at a time.
class Rounds final {
 public:
  class Operation;

  /// Lifetime: refers to `segment` and `waiter`.
  Rounds(const Segment& segment, Waiter& waiter, int rank, int size, RankNames names);

  /// Starts the rounds of `call`. Every collective starts exactly one Operation. `history`: a
  /// digest of this call and of all before it.
  [[nodiscard]] Operation start(const Call& call, uint64_t history, const Deadline& deadline);
  /// Returns how many rounds have begun in all operations.
  [[nodiscard]] uint64_t begun() const { return begun_; }

 private:
  void compare_ended(uint64_t round) const;
  void compare_published(int peer, uint64_t round) const;
  [[nodiscard]] std::string difference(int peer, uint64_t their_calls) const;

  const Segment& segment_;
  Waiter& waiter_;
  const int rank_;
  const int size_;
  const RankNames names_;
  uint64_t begun_ = 0;
  uint64_t calls_ = 0;    ///< operations that were started
  uint64_t history_ = 0;  ///< of the last one
};

/// The rounds of one collective, numbered from 0. In each of them a rank
/// 1. calls begin(), fills its slot and calls publish();
/// 2. calls await() or await_all() and reads the others' slots;
/// 3. in a reduction, may leave a result for the others and read theirs;
/// 4. calls end(), after which it reads nothing of this round.
/// Steps of several rounds may overlap, but each step is taken in the order of the rounds.
///
/// Every rank takes part in every round, also a rank that has nothing to give or to read.
/// Errors: LinkBroken and LinkTimeout from all that wait; Mismatch from begin(), await(),
/// await_all(), before any data of another call is returned.
class Rounds::Operation final {
 public:
  [[nodiscard]] int rank() const { return all_.rank_; }
  [[nodiscard]] int size() const { return all_.size_; }
  [[nodiscard]] const RankNames& names() const { return all_.names_; }

  /// Waits until all ranks have read what this rank's slot held before. Returns the slot.
  [[nodiscard]] std::byte* begin(int64_t round);
  /// Tells the others in all rounds that follow where this rank's data lies: `offset` bytes into
  /// the SharedBlock with number `block`.
  void set_place(uint32_t block, uint64_t offset);
  /// Lets the others read this rank's slot.
  void publish(int64_t round);

  /// Waits until `peer` has published its slot.
  void await(int peer, int64_t round);
  /// Waits until all other ranks have.
  void await_all(int64_t round);
  [[nodiscard]] const RoundHeader& header(int rank, int64_t round) const;
  [[nodiscard]] const std::byte* slot(int rank, int64_t round) const;

  /// Returns where this rank may leave a result that the others read.
  [[nodiscard]] std::byte* own_result(int64_t round) const;
  /// Lets the others read this rank's result.
  void publish_result(int64_t round);
  /// Waits until `peer` has published its result, and returns it.
  [[nodiscard]] const std::byte* await_result(int peer, int64_t round);
  /// Waits until all other ranks have published theirs.
  void await_all_results(int64_t round);

  void end(int64_t round);

 private:
  friend class Rounds;
  Operation(Rounds& all, const RoundHeader& header, const Deadline& deadline)
      : all_(all), first_(all.begun_), header_(header), deadline_(deadline) {}
  [[nodiscard]] uint64_t number(int64_t round) const {
    return first_ + static_cast<uint64_t>(round);
  }

  Rounds& all_;
  const uint64_t first_;  ///< the number of round 0 among the rounds of all operations
  RoundHeader header_;
  const Deadline deadline_;
};

}  // namespace argosy::transport
