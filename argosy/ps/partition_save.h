#pragma once

#include <atomic>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "argosy/ps/partition.h"
#include "argosy/ps/table_files.h"
#include "argosy/rpc/function.h"

namespace argosy::ps {

/// Writes what a partition holds at one moment into files, while workers go on: a thread copies a
/// few rows at a time, and each push keeps what it changes of those that are not copied yet.
/// Besides these it takes the memory of one shard.
class PartitionSave final {
 public:
  /// The moment. The caller holds `mutex`, with which the thread keeps pushes out for less than a
  /// millisecond at a time. Lifetime: partition and mutex stay.
  PartitionSave(Partition& partition, std::shared_mutex& mutex, std::string folder);
  /// Ends it early.
  ~PartitionSave();
  PartitionSave(const PartitionSave&) = delete;
  PartitionSave& operator=(const PartitionSave&) = delete;
  PartitionSave(PartitionSave&&) = delete;
  PartitionSave& operator=(PartitionSave&&) = delete;

  /// What was written. It fails with the CheckpointError that prevented it.
  [[nodiscard]] rpc::Later<std::vector<ShardFile>> result() const { return result_; }
  [[nodiscard]] bool is_done() const { return done_; }

 private:
  void run();
  [[nodiscard]] std::vector<SavedRows> copy(int shard);
  [[nodiscard]] std::vector<SavedDense> dense_of(int shard);

  Partition& partition_;
  std::shared_mutex& mutex_;
  const std::string folder_;
  std::vector<Partition::DenseParameter> dense_;
  rpc::Later<std::vector<ShardFile>> result_{};
  std::atomic<bool> stop_ = false;
  std::atomic<bool> done_ = false;
  std::thread thread_{};
};

}  // namespace argosy::ps
