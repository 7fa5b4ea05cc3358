#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/prune.h"
#include "argosy/comm/group.h"

namespace argosy::checkpoint {

struct Snapshot;  // snapshot.h

/// What save() does while a former save is still being written.
enum class WhenBusy : uint8_t {
  kWait,  ///< waits until it is done
  kSkip,  ///< does nothing, on all ranks alike
};

enum class Saved : uint8_t { kStarted, kSkipped };

struct SaverOptions {
  KeepOptions keep{};  ///< which checkpoints stay after each save; default: all
  /// Prunes only checkpoints whose names begin with it: "step-" leaves all others alone.
  std::string keep_prefix{};
  /// True: save() copies all, and a thread writes. False: it returns when all is on the disk, and
  /// writes tensors from where they lie, without memory for copies of those that lie in rows on the
  /// CPU. Nobody may write to them until then.
  bool async = true;
  /// True: all ranks write, each its share of the tensors, into a folder that all ranks see. False:
  /// rank 0 writes all, and the others send it their rank_tensors and rank_values. Where ranks
  /// divide tensors (parallel::fully_shard(), a divided optimizer), each writes its parts in either
  /// case, unless the folder is one that not all ranks see: rank 0 then gathers them.
  bool sharded = false;
  WhenBusy when_busy = WhenBusy::kWait;
};

/// The time of all saves so far.
struct SaverTimes {
  int64_t saves = 0;
  int64_t skipped = 0;
  int64_t bytes = 0;                    ///< written by this rank
  std::chrono::nanoseconds stalled{0};  ///< time in save(), during which the loop stood still
  std::chrono::nanoseconds waited{0};   ///< part of it: waiting for the former save
  std::chrono::nanoseconds writing{0};  ///< time of the writer's thread
};

/// Writes checkpoints of a training into a folder without delaying the training.
///
///     checkpoint::Saver saver("runs/a/checkpoints", {.keep = {.keep_last = 3}}, world);
///     if (step % 100 == 0) saver.save(snapshot());        // copies, returns
///     saver.wait();                                       // returns when all is on the disk
///
/// save() copies the tensors into memory that is kept between saves; one thread writes the copy.
/// Each checkpoint is a folder that appears whole or not at all, see docs/reference/checkpoints.md.
///
/// Collective over `group`: the constructor, save() and wait(), in the same order on all ranks. The
/// writing threads use a group of their own. Without a group there is one process. Not thread-safe.
/// The destructor waits for the thread and logs an error that nobody received.
/// Errors: CheckpointError from the next save() or wait() after a failure, on all ranks, with the
/// message of the first rank that failed; that save() saves nothing, and older checkpoints stay.
/// CommError and TimeoutError if a rank is gone. The constructor throws if the folder cannot be
/// made or written.
class Saver final {
 public:
  explicit Saver(std::string directory, const SaverOptions& options = {}, comm::Group group = {});
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Saves under `name`, or under the name `step-000000120` of its step. An existing checkpoint
  /// with that name is replaced.
  Saved save(const Snapshot& snapshot, const std::string& name = {});
  /// Returns when everything is on the disk, on all ranks.
  void wait();

  [[nodiscard]] const std::string& directory() const;
  [[nodiscard]] SaverTimes times() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::checkpoint
