#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "argosy/checkpoint/prune.h"
#include "argosy/comm/group.h"

namespace argosy::checkpoint {

struct Snapshot;  // snapshot.h

/// What save() does while the former save is still being written.
enum class WhenBusy : uint8_t {
  kWait,  ///< until it is done
  kSkip,  ///< nothing, on all ranks alike
};

enum class Saved : uint8_t { kStarted, kSkipped };

struct SaverOptions {
  KeepOptions keep{};  ///< what is pruned after each save; default: nothing
  /// Of those whose names begin with it: "step-" leaves alone what was saved under another name.
  std::string keep_prefix{};
  bool async = true;  ///< a thread writes; false: save() returns when all is on the disk
  /// All ranks write, each its share of the tensors: for a file system that all see. Without it
  /// rank 0 writes all, and the others send it their rank_tensors and rank_values.
  bool sharded = false;
  WhenBusy when_busy = WhenBusy::kWait;
};

/// Where the time of saves went, since the beginning.
struct SaverTimes {
  int64_t saves = 0;
  int64_t skipped = 0;
  int64_t bytes = 0;                    ///< copied by this rank
  std::chrono::nanoseconds stalled{0};  ///< in save(): the loop stood still
  std::chrono::nanoseconds waited{0};   ///< of these, for the former save
  std::chrono::nanoseconds writing{0};  ///< in the writer's thread
};

/// Writes checkpoints of a training into a folder, without holding it up.
///
///     checkpoint::Saver saver("runs/a/checkpoints", {.keep = {.keep_last = 3}}, world);
///     if (step % 100 == 0) saver.save(snapshot());        // copies, returns
///     saver.wait();                                       // before the end: what was saved is on
///     the disk
///
/// save() copies the tensors into memory that is kept between saves; one thread writes the copy.
/// Each checkpoint is a folder that appears whole or not at all, see docs/reference/checkpoints.md.
///
/// Collective over `group`: the constructor, save() and wait(), in the same order on all ranks. The
/// threads speak through a group of their own. Without a group: one process.
/// Not thread-safe. The destructor waits for the thread; an error that nobody asked for is logged.
/// Errors: CheckpointError, from the next save() or wait() after it happened, on all ranks alike
/// and
///   in the words of the first rank that failed; that save() has saved nothing. Whole checkpoints
///   that were there stay. CommError and TimeoutError when a rank is gone. From the constructor:
///   the folder cannot be made or written to.
class Saver final {
 public:
  explicit Saver(std::string directory, const SaverOptions& options = {}, comm::Group group = {});
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Under the name `step-000000120` of its step, or under `name`, which is replaced if it is
  /// there.
  Saved save(const Snapshot& snapshot, const std::string& name = {});
  /// Returns when all that was saved is on the disk, on all ranks.
  void wait();

  [[nodiscard]] const std::string& directory() const;
  [[nodiscard]] SaverTimes times() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// "step-000000120"
[[nodiscard]] std::string step_name(int64_t step);

}  // namespace argosy::checkpoint
