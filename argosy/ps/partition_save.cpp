#include "argosy/ps/partition_save.h"

#include <exception>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

/// Slots of an index that are copied while pushes wait: less than a millisecond.
constexpr size_t kSlotsAtOnce = 4096;

}  // namespace

PartitionSave::PartitionSave(Partition& partition, std::shared_mutex& mutex, std::string folder)
    : partition_(partition),
      mutex_(mutex),
      folder_(std::move(folder)),
      dense_(partition.dense_values()) {
  partition_.for_each_shard([](RowTable& shard) { shard.freeze(); });
  thread_ = std::thread([this] { run(); });
}

PartitionSave::~PartitionSave() {
  stop_ = true;
  thread_.join();
}

void PartitionSave::run() {
  std::vector<ShardFile> files;
  try {
    const ShardRange& shards = partition_.shards();
    for (int shard = shards.first; shard < shards.last && !stop_; ++shard) {
      files.push_back(
          write_shard(folder_, shard, partition_.tables(), copy(shard), dense_of(shard)));
    }
    stop_ ? result_.fail(std::make_exception_ptr(
                CheckpointError("ps.save", "the server stopped before all was written")))
          : result_.set(files);
  } catch (...) {
    result_.fail(std::current_exception());
  }
  const std::unique_lock lock(mutex_);
  partition_.for_each_shard([](RowTable& shard) { shard.unfreeze(); });
  done_ = true;
}

std::vector<SavedRows> PartitionSave::copy(int shard) {
  std::vector<SavedRows> rows;
  for (uint32_t t = 0; t < partition_.tables().sparse.size(); ++t) {
    RowTable& table = partition_.shard(t, shard);
    for (bool whole = false; !whole && !stop_;) {
      const std::shared_lock lock(mutex_);
      whole = table.copy_frozen(kSlotsAtOnce);
    }
    const std::unique_lock lock(mutex_);
    rows.push_back(table.take_frozen());
  }
  return rows;
}

std::vector<SavedDense> PartitionSave::dense_of(int shard) {
  const std::vector<int> shards = dense_shards(partition_.tables().dense);
  std::vector<SavedDense> here;
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (const size_t number = partition_.dense()[i]; shards[number] == shard) {
      here.push_back({.number = number, .values = std::move(dense_[i])});
    }
  }
  return here;
}

}  // namespace argosy::ps
