#include "argosy/ps/id_deal.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "argosy/base/check.h"
#include "argosy/ps/copy_row.h"
#include "argosy/ps/shard_threads.h"

namespace argosy::ps {
namespace {

/// Finds ids that were there before: those of one shard, which fit into the processor's cache.
class SeenIds final {
 public:
  explicit SeenIds(size_t most)
      : slots_(std::bit_ceil(std::max<size_t>(2 * most, 16))), mask_(slots_.size() - 1) {}

  /// Returns where the id stands; `next` if it is new.
  uint32_t find_or_add(uint64_t id, uint32_t next) {
    constexpr unsigned kOtherBitsThanTheShard = 20;
    for (size_t at = (mixed(id) >> kOtherBitsThanTheShard) & mask_;; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      if (slot.place == kNone) {
        slot = {id, next};
        return next;
      }
      if (slot.id == id) {
        return slot.place;
      }
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Slot {
    uint64_t id = 0;
    uint32_t place = kNone;
  };
  std::vector<Slot> slots_;
  const size_t mask_;
};

}  // namespace

const ShardThreads& IdDeal::caller_alone() {
  static const ShardThreads alone(1);
  return alone;
}

IdDeal::IdDeal(std::span<const uint64_t> ids, const ShardThreads& threads)
    : threads_(&threads), order_(ids.size()), standing_(ids.size()) {
  ARGOSY_CHECK(ids.size() < UINT32_MAX, "ps.ids", "{} ids at once are too many", ids.size());
  std::vector<uint8_t> shards(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    shards[i] = static_cast<uint8_t>(shard_of(ids[i]));
    ++ends_[shards[i] + 1U];
  }
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  std::array<size_t, kShards + 1> next = ends_;
  for (size_t i = 0; i < ids.size(); ++i) {
    order_[next[shards[i]]++] = static_cast<uint32_t>(i);
  }
  std::array<std::vector<uint64_t>, kShards> unique;
  threads.for_each(kShards, ids.size(), [&](size_t s) { unique[s] = find_unique(ids, s); });
  unique_.reserve(ids.size());
  for (size_t s = 0; s < kShards; ++s) {
    unique_.insert(unique_.end(), unique[s].begin(), unique[s].end());
    begins_[s + 1] = unique_.size();
  }
}

/// Says of each place of the shard which of its different ids, which it returns, stands there.
std::vector<uint64_t> IdDeal::find_unique(std::span<const uint64_t> ids, size_t shard) {
  const size_t most = ends_[shard + 1] - ends_[shard];
  SeenIds seen(most);
  std::vector<uint64_t> unique;
  unique.reserve(most);
  for (size_t at = ends_[shard]; at < ends_[shard + 1]; ++at) {
    const uint64_t id = ids[order_[at]];
    standing_[at] = seen.find_or_add(id, static_cast<uint32_t>(unique.size()));
    if (standing_[at] == unique.size()) {
      unique.push_back(id);
    }
  }
  return unique;
}

std::vector<uint32_t> IdDeal::counts(const ShardRange& shards) const {
  std::vector<uint32_t> counts;
  counts.reserve(static_cast<size_t>(shards.count()));
  for (int s = shards.first; s < shards.last; ++s) {
    counts.push_back(static_cast<uint32_t>(begin(s + 1) - begin(s)));
  }
  return counts;
}

void IdDeal::spread(std::span<const float* const> rows, size_t dim, std::span<float> out) const {
  ARGOSY_CHECK(rows.size() == unique_.size() && out.size() == size() * dim,
               "ps.ids",
               "expected {} rows for {} places of {} floats, got {} and {} floats",
               unique_.size(),
               size(),
               dim,
               rows.size(),
               out.size());
  threads_->for_each(kShards, size(), [&](size_t shard) {
    for_each_place(shard, [&](size_t i, size_t u) { copy_row(&out[i * dim], rows[u], dim); });
  });
}

void IdDeal::gather(std::span<const float> rows, size_t dim, std::span<float* const> sums) const {
  ARGOSY_CHECK(sums.size() == unique_.size() && rows.size() == size() * dim,
               "ps.ids",
               "expected {} sums of {} rows of {} floats, got {} and {} floats",
               unique_.size(),
               size(),
               dim,
               sums.size(),
               rows.size());
  threads_->for_each(kShards, size(), [&](size_t shard) {
    size_t next = begins_[shard];
    for_each_place(shard, [&](size_t i, size_t u) {
      const float* const row = &rows[i * dim];
      if (u == next) {  // the first of this id
        ++next;
        copy_row(sums[u], row, dim);
        return;
      }
      for (size_t d = 0; d < dim; ++d) {
        sums[u][d] += row[d];
      }
    });
  });
}

}  // namespace argosy::ps
