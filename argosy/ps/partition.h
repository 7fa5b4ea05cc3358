#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "argosy/ps/requests.h"
#include "argosy/ps/row_spill.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/shard_threads.h"
#include "argosy/ps/shards.h"
#include "argosy/ps/tables.h"
#include "argosy/ps/update_mode.h"
#include "argosy/ps/worker_pace.h"

namespace argosy::ps {

class TableFiles;

struct PartitionOptions {
  int number = 0;
  int count = 1;  ///< of all partitions: as many as there are servers
  int workers = 1;
  UpdateMode mode = UpdateMode::kSync;
  uint64_t staleness = 0;  ///< with kHalfAsync
  LateOptions late{};
  std::string record{};  ///< see TableServerOptions
  std::string replay{};
  /// For the shards of a batch; nullptr: the caller's thread alone. Changes no bit.
  std::shared_ptr<const ShardThreads> threads{};
  std::shared_ptr<RowSpill> spill{};  ///< nullptr: all rows stay in memory
};

/// What a partition knows beside rows and parameters.
struct PartitionState {
  std::vector<uint64_t> pushes{};       ///< that were taken, of each worker
  std::vector<uint64_t> upkeeps{};      ///< after the last of them
  std::vector<uint64_t> steps{};        ///< of the training, that they stand for
  std::vector<uint64_t> head_starts{};  ///< see WorkerPace
  uint64_t updates = 0;
  std::vector<PushRequest> collected{};  ///< kSync: of steps that are not whole
  auto fields() { return std::tie(pushes, upkeeps, steps, head_starts, updates, collected); }
};

/// Some of the shards, those that one server begins with. What it holds is a function of the
/// pushes, in their order; pulls change nothing. Not thread-safe, but for the functions that are
/// const.
class Partition final {
 public:
  /// Errors: UsageError for tables that cannot be.
  Partition(TableSet tables, const PartitionOptions& options);

  /// Sets the dense parameters that lie here, in their order.
  /// Errors: UsageError after a push, or for another number of them.
  void set_dense(std::span<const float> values);
  /// Makes room in memory and reads from disk what the push() of this request needs, so that the
  /// push meets no error of the disk. Errors: DiskError, UsageError; no number has changed then.
  void prepare(const PushRequest& request);
  /// Returns whether a push, or upkeep, was taken before.
  [[nodiscard]] bool has(const PushRequest& request) const;
  /// Takes a push, or upkeep; one that was taken before changes nothing.
  /// Errors: UsageError for one that does not fit the tables, or of which an earlier one is
  /// missing. It is then not applied.
  void push(const PushRequest& request);
  /// True when a pull has to wait for pushes of others.
  [[nodiscard]] bool must_wait(const PullRequest& request) const;
  /// Returns how many floats a pull gives. Errors: UsageError for one that does not fit the tables.
  [[nodiscard]] size_t size_of(const PullRequest& request) const;
  /// Writes what a pull gives. Errors: DiskError.
  void pull(const PullRequest& request, std::span<float> out) const;

  /// Of each of dense().
  [[nodiscard]] const std::vector<DenseNumbers>& dense_values() const { return dense_; }
  [[nodiscard]] PartitionState state() const;

  /// True before the first push.
  [[nodiscard]] bool is_fresh() const;

  /// Puts rows of a shard, or dense parameters, in their place.
  /// Errors: UsageError for what does not lie here, DiskError; a part of it may be there then.
  void restore(int shard, uint32_t table, const SavedRows& rows);
  void restore(std::span<const SavedDense> dense);
  /// Puts all of a checkpoint that lies here in its place. Errors: UsageError after a push;
  /// CheckpointError, after which a part of it may be there.
  void restore(const TableFiles& saved);
  /// Errors: UsageError for another number of workers.
  void restore(const PartitionState& state);

  [[nodiscard]] const TableSet& tables() const { return tables_; }
  [[nodiscard]] const PartitionOptions& options() const { return options_; }
  [[nodiscard]] const ShardRange& shards() const { return range_; }
  /// Returns the dense parameters that lie here, by their numbers in TableSet::dense.
  [[nodiscard]] const std::vector<size_t>& dense() const { return dense_here_; }
  [[nodiscard]] RowTable& shard(uint32_t table, int shard);
  /// Of a sparse table, here.
  [[nodiscard]] TableStat stat(uint32_t table) const;
  /// Returns how many pushes of the worker it has.
  [[nodiscard]] uint64_t pushes_of(uint32_t worker) const { return pace_.pushes_of(worker); }
  /// Returns how much upkeep it has of the worker since the last of them.
  [[nodiscard]] uint64_t upkeeps_of(uint32_t worker) const {
    return worker < upkeeps_.size() ? upkeeps_[worker] : 0;
  }
  /// Returns how many steps of the training they stand for.
  [[nodiscard]] uint64_t steps_of(uint32_t worker) const {
    return worker < steps_.size() ? steps_[worker] : 0;
  }
  /// Returns the same of all other workers together.
  [[nodiscard]] uint64_t steps_of_others(uint32_t worker) const;
  /// How far the workers are.
  [[nodiscard]] WorkerPace& pace() { return pace_; }
  [[nodiscard]] uint64_t workers_apart() const { return pace_.apart(); }
  /// Updates that were applied: of all workers together in kSync, else of each.
  [[nodiscard]] uint64_t updates() const { return updates_; }

 private:
  void check_fresh() const;
  void check(const PushRequest& request) const;
  void make_room();
  void check_read(const PushRequest& request) const;
  template <typename Rows>
  void check_ids(const Rows& rows) const;
  [[nodiscard]] PushRequest made_timely(PushRequest push) const;
  [[nodiscard]] std::vector<float> weights_of(const RowsPushed& rows) const;
  void apply(std::span<const PushRequest* const> of_workers);
  void apply_rows(uint32_t table, std::span<const RowsPushed* const> of_workers);
  void apply_dense(std::span<const PushRequest* const> of_workers);
  void add_rows(const RowsPushed& rows);
  /// Calls `work` with each shard, where its rows begin among those of all, and how many it has.
  template <typename Rows, typename Work>
  void for_each_shard(const Rows& rows, const Work& work) const;
  void add_dense(const PushRequest& request);
  void finish_steps();
  bool finish_upkeep();
  void count(const PushRequest& request);
  void keep_up(const Upkeep& upkeep);

  const TableSet tables_;
  const PartitionOptions options_;
  const std::shared_ptr<const ShardThreads> threads_;
  const ShardRange range_;
  const std::shared_ptr<SpillPart> spill_;       ///< nullptr: all rows stay in memory
  std::vector<std::vector<RowTable>> sparse_{};  ///< by table, then shard
  std::vector<size_t> dense_here_{};
  std::vector<DenseNumbers> dense_{};
  size_t dense_size_ = 0;
  WorkerPace pace_;                ///< pushes that were taken
  std::vector<uint64_t> steps_;    ///< that they stand for, by worker
  std::vector<uint64_t> upkeeps_;  ///< since the last of them, by worker
  /// kSync: by worker, of the steps that are not whole. There may be two pushes of a worker, when a
  /// backup has taken over and knows of one that came after one that was lost.
  std::vector<std::deque<PushRequest>> collected_{};
  uint64_t updates_ = 0;
};

}  // namespace argosy::ps
