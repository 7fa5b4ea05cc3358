#include "argosy/ps/partition_copy.h"

#include <mutex>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"

namespace argosy::ps {
namespace {

/// Slots of an index that are copied while pushes wait: less than a millisecond.
constexpr size_t kSlotsAtOnce = 4096;

}  // namespace

PartitionCopy::PartitionCopy(Partition& partition, std::shared_mutex& mutex, Receiver receiver)
    : partition_(partition),
      mutex_(mutex),
      receiver_(std::move(receiver)),
      dense_(partition.dense_values()) {
  const ShardRange& shards = partition_.shards();
  for (int shard = shards.first; shard < shards.last; ++shard) {
    std::vector<RowSnapshot*>& here = copies_.emplace_back();
    for (uint32_t t = 0; t < partition_.tables().sparse.size(); ++t) {
      here.push_back(&partition_.shard(t, shard).freeze());
    }
  }
  thread_ = std::thread([this] { run(); });
}

PartitionCopy::~PartitionCopy() {
  stop_ = true;
  thread_.join();
}

void PartitionCopy::run() {
  std::exception_ptr failure;
  try {
    copy_all();
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::unique_lock lock(mutex_);
    for (size_t s = 0; s < copies_.size(); ++s) {
      for (uint32_t t = 0; t < copies_[s].size(); ++t) {
        partition_.shard(t, partition_.shards().first + static_cast<int>(s))
            .unfreeze(*copies_[s][t]);
      }
    }
  }
  try {
    receiver_.end(failure);
  } catch (const std::exception& error) {
    log::error("[ps.view] partition {}: {}", partition_.options().number, error.what());
  }
  done_ = true;
}

void PartitionCopy::copy_all() {
  const int first = partition_.shards().first;
  for (size_t s = 0; s < copies_.size(); ++s) {
    const int shard = first + static_cast<int>(s);
    std::vector<SavedRows> rows;
    for (uint32_t t = 0; t < copies_[s].size(); ++t) {
      rows.push_back(copy(partition_.shard(t, shard), *copies_[s][t]));
    }
    receiver_.take(shard, rows, dense_of(shard));
  }
}

SavedRows PartitionCopy::copy(RowTable& table, RowSnapshot& to) {
  for (bool whole = false; !whole;) {
    if (stop_) {
      throw Error("ps.server", "the server stopped before all was copied");
    }
    const std::shared_lock lock(mutex_);
    whole = table.copy_frozen(to, kSlotsAtOnce);
  }
  return to.take();  // which no push touches any more
}

std::vector<SavedDense> PartitionCopy::dense_of(int shard) {
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
