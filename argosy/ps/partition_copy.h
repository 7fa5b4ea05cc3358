#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "argosy/ps/partition.h"
#include "argosy/ps/row_snapshot.h"
#include "argosy/ps/tables.h"

namespace argosy::ps {

/// Copies what a partition holds at one moment, shard by shard, while workers go on: a thread
/// copies a few rows at a time, and each push keeps what it changes of those that are not copied
/// yet. Besides these it takes the memory of one shard.
class PartitionCopy final {
 public:
  struct Receiver {
    /// A shard: rows of each sparse table, and its dense parameters. It may throw.
    std::function<void(int shard, const std::vector<SavedRows>&, const std::vector<SavedDense>&)>
        take{};
    /// After all of them, or with what was thrown. Called without the mutex.
    std::function<void(std::exception_ptr)> end{};
  };
  /// The moment. The caller holds `mutex`, with which the thread keeps pushes out for less than a
  /// millisecond at a time. Lifetime: partition and mutex stay.
  PartitionCopy(Partition& partition, std::shared_mutex& mutex, Receiver receiver);
  /// Ends it early, with an error to the receiver. The caller does not hold the mutex, unless
  /// is_done().
  ~PartitionCopy();
  PartitionCopy(const PartitionCopy&) = delete;
  PartitionCopy& operator=(const PartitionCopy&) = delete;
  PartitionCopy(PartitionCopy&&) = delete;
  PartitionCopy& operator=(PartitionCopy&&) = delete;

  [[nodiscard]] bool is_done() const { return done_; }

 private:
  void run();
  void copy_all();
  [[nodiscard]] SavedRows copy(RowTable& table, RowSnapshot& to);
  [[nodiscard]] std::vector<SavedDense> dense_of(int shard);

  Partition& partition_;
  std::shared_mutex& mutex_;
  const Receiver receiver_;
  std::vector<std::vector<RowSnapshot*>> copies_{};  ///< by shard, then table
  std::vector<DenseNumbers> dense_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> done_ = false;
  std::thread thread_{};
};

}  // namespace argosy::ps
