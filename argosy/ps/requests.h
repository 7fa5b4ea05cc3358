#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "argosy/ps/tables.h"
#include "argosy/rpc/memory.h"

namespace argosy::ps {

// What workers and servers tell each other. All are arguments or results of rpc.

/// Rows of one table.
struct RowsWanted {
  uint32_t table = 0;
  std::vector<uint32_t> counts{};  ///< ids in each shard of the partition
  rpc::Memory ids{};               ///< u64 [n], by shard
  auto fields() { return std::tie(table, counts, ids); }
};

struct PullRequest {
  uint32_t partition = 0;
  uint32_t worker = 0;
  uint64_t number = 0;  ///< of the worker's pulls, from 0
  uint64_t pushes = 0;  ///< that the worker has made before
  std::vector<RowsWanted> rows{};
  bool dense = false;  ///< the dense parameters too
  auto fields() { return std::tie(partition, worker, number, pushes, rows, dense); }
};

/// f32: the rows of each table in turn, then the dense parameters.
struct PullReply {
  rpc::Memory values{};
  uint64_t seen = 0;  ///< Partition::steps_of_others() at that moment
  auto fields() { return std::tie(values, seen); }
};

/// A worker does not say what it has seen: its push is never late.
inline constexpr uint64_t kSawAll = UINT64_MAX;

/// The gradient of rows of one table.
struct RowsPushed {
  uint32_t table = 0;
  double lr = 0;
  std::vector<uint32_t> counts{};
  rpc::Memory ids{};        ///< u64 [n], by shard, each once
  rpc::Memory gradients{};  ///< f32 [n, dim]
  rpc::Memory shows{};      ///< f32 [n] or empty
  rpc::Memory clicks{};     ///< f32 [n] or empty
  uint64_t seen = kSawAll;  ///< PullReply::seen of the read that the gradients are of
  rpc::Memory read{};       ///< f32 [n, dim], what it read; empty without LateOptions::compensation
  auto fields() { return std::tie(table, lr, counts, ids, gradients, shows, clicks, seen, read); }
};

/// What is done to tables with statistics between two pushes.
struct Upkeep {
  int32_t day = -1;  ///< that begins; -1: none
  bool shrink = false;
  [[nodiscard]] bool is_any() const { return day >= 0 || shrink; }
  auto fields() { return std::tie(day, shrink); }
};

/// A push, or upkeep, which has its place before the worker's push of the same number.
struct PushRequest {
  uint32_t partition = 0;
  uint32_t worker = 0;
  uint64_t number = 0;   ///< of the worker's pushes, from 0
  uint64_t upkeeps = 0;  ///< with upkeep: those of the worker before it, since its last push
  std::vector<RowsPushed> rows{};
  std::vector<double> dense_lr{};  ///< of each dense parameter there; empty: none is pushed
  rpc::Memory dense{};             ///< f32: their gradients in turn
  uint64_t dense_seen = kSawAll;   ///< as RowsPushed::seen
  rpc::Memory dense_read{};        ///< as RowsPushed::read
  Upkeep upkeep{};
  uint64_t steps = 1;       ///< of the training, that it stands for
  uint64_t head_start = 0;  ///< see WorkerPace; the primary tells its backup
  auto fields() {
    return std::tie(partition,
                    worker,
                    number,
                    upkeeps,
                    rows,
                    dense_lr,
                    dense,
                    dense_seen,
                    dense_read,
                    upkeep,
                    steps,
                    head_start);
  }
  [[nodiscard]] bool is_upkeep() const { return upkeep.is_any(); }
  /// Of what it takes with it.
  [[nodiscard]] size_t bytes() const {
    size_t all = dense.size() + dense_read.size();
    for (const RowsPushed& one : rows) {
      all += one.ids.size() + one.gradients.size() + one.shows.size() + one.clicks.size() +
             one.read.size();
    }
    return all;
  }
};

/// Asks how far a worker is.
struct ProgressRequest {
  uint32_t partition = 0;
  uint32_t worker = 0;
  auto fields() { return std::tie(partition, worker); }
};

struct WorkerProgress {
  uint64_t tables = 0;   ///< TableSet::fingerprint() of the server
  std::string terms{};   ///< TableServerOptions::terms
  uint64_t pushes = 0;   ///< of the worker, that the partition has
  uint64_t upkeeps = 0;  ///< after the last of them
  uint64_t steps = 0;    ///< of the training, that they stand for
  auto fields() { return std::tie(tables, terms, pushes, upkeeps, steps); }
};

/// What a server tells of one table.
struct TableStat {
  std::string name{};
  uint64_t rows = 0;
  uint64_t bytes = 0;       ///< of memory, for rows and ids
  uint64_t disk_rows = 0;   ///< those of the rows that lie on disk
  uint64_t disk_bytes = 0;  ///< their numbers, without what the files have beside them
  auto fields() { return std::tie(name, rows, bytes, disk_rows, disk_bytes); }
  /// Adds what another server tells of it.
  void add(const TableStat& other) {
    rows += other.rows;
    bytes += other.bytes;
    disk_rows += other.disk_rows;
    disk_bytes += other.disk_bytes;
  }
};

/// The folder of a checkpoint, which servers and workers see under one path.
struct FolderRequest {
  uint32_t partition = 0;
  std::string folder{};
  auto fields() { return std::tie(partition, folder); }
};

/// SavedDense, of any size: it travels beside the message.
struct DenseGiven {
  uint64_t number = 0;
  rpc::Memory weights{};  ///< f32
  rpc::Memory state{};    ///< f32
  auto fields() { return std::tie(number, weights, state); }
};

/// Asks for a save of a partition.
struct SaveRequest {
  uint32_t partition = 0;
  std::string folder{};
  std::vector<DenseGiven> dense{};  ///< that the partition is given first; empty: it has them
  auto fields() { return std::tie(partition, folder, dense); }
};

}  // namespace argosy::ps
