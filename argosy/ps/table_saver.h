#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "argosy/checkpoint/prune.h"
#include "argosy/ps/table_client.h"

namespace argosy::ps {

/// Saves and resumes the tables of a job. One worker has it; the servers write, into a folder that
/// all processes see under one path.
///
///     ps::TableSaver saver(client, "runs/clicks", {.keep_last = 2});
///     int64_t step = saver.resume();               // 0 without a checkpoint
///     …
///     if (++step % 100 == 0) saver.save(step);     // returns while the servers write
///     (void)saver.wait();
///
/// A checkpoint depends neither on the number of servers nor on that of workers. It has the form of
/// all checkpoints here, so `argosy checkpoint` lists, checks and converts it. The thread that uses
/// the client uses this. The destructor waits, and logs an error that nobody received.
class TableSaver final {
 public:
  /// `directory`: of the checkpoints. Lifetime: the client stays.
  /// Errors: CheckpointError when nothing can be written there.
  TableSaver(TableClient& client,
             const std::string& directory,
             const checkpoint::KeepOptions& keep = {});
  ~TableSaver();
  TableSaver(const TableSaver&) = delete;
  TableSaver& operator=(const TableSaver&) = delete;
  TableSaver(TableSaver&&) = delete;
  TableSaver& operator=(TableSaver&&) = delete;

  /// True if the directory has a checkpoint that resume() would load.
  [[nodiscard]] bool has_any() const;
  /// Loads the newest whole checkpoint into the servers' tables and returns its step; 0 without
  /// one. In place of TableClient::begin(). Errors: those of TableClient::load().
  [[nodiscard]] int64_t resume();
  /// Returns the checkpoint that resume() has loaded; "": none.
  [[nodiscard]] const std::string& resumed_from() const { return resumed_from_; }
  /// Says that the training is at that step, in place of resume(): another process began it.
  void go_on(int64_t step) { begun_ = step; }
  /// Begins a checkpoint of that step. Blocks: while a former one is being written. The first save
  /// moves checkpoints of later steps than it began at into a folder `earlier-<n>`.
  /// `dense`: see TableClient::begin_save(). `place`: see ServedTraining::set_place().
  /// Errors: CheckpointError of this or the former save.
  void save(int64_t step, const std::vector<SavedDense>& dense = {}, const std::string& place = {});
  /// Returns when the last save is on the disk. False: a server died meanwhile, so that checkpoint
  /// is missing; the training goes on, and may save again. Errors: CheckpointError.
  [[nodiscard]] bool wait();

 private:
  TableClient& client_;
  const std::string directory_;
  const checkpoint::KeepOptions keep_;
  std::string resumed_from_{};
  int64_t begun_ = 0;
  bool saves_ = false;
  bool missed_ = false;  ///< the last checkpoint, because of a death
  std::future<void> writing_{};
};

}  // namespace argosy::ps
