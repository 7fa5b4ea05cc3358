#include "argosy/ps/id_deal.h"

#include <algorithm>
#include <bit>

#include "argosy/base/check.h"
#include "argosy/ps/copy_row.h"

namespace argosy::ps {
namespace {

/// Finds ids that were there before. It is used for one shard after the other, whose ids fit into
/// the processor's cache.
class SeenIds final {
 public:
  explicit SeenIds(size_t most) : slots_(std::bit_ceil(std::max<size_t>(2 * most, 16))) {}

  /// Forgets all, and has room for `most`.
  void begin(size_t most) {
    mask_ = std::bit_ceil(std::max<size_t>(2 * most, 16)) - 1;
    std::fill_n(slots_.begin(), mask_ + 1, Slot{});
  }
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
  size_t mask_ = 0;
};

}  // namespace

IdDeal::IdDeal(std::span<const uint64_t> ids) : places_(ids.size()) {
  ARGOSY_CHECK(ids.size() < UINT32_MAX, "ps.ids", "{} ids at once are too many", ids.size());
  std::vector<uint8_t> shards(ids.size());
  std::array<size_t, kShards + 1> ends{};
  for (size_t i = 0; i < ids.size(); ++i) {
    shards[i] = static_cast<uint8_t>(shard_of(ids[i]));
    ++ends[shards[i] + 1U];
  }
  size_t most = 0;
  for (size_t s = 1; s <= kShards; ++s) {
    most = std::max(most, ends[s]);
    ends[s] += ends[s - 1];
  }
  std::vector<uint32_t> order(ids.size());
  std::array<size_t, kShards + 1> next = ends;
  for (size_t i = 0; i < ids.size(); ++i) {
    order[next[shards[i]]++] = static_cast<uint32_t>(i);
  }
  unique_.reserve(ids.size());
  SeenIds seen(most);
  for (size_t s = 0; s < kShards; ++s) {
    begins_[s] = unique_.size();
    seen.begin(ends[s + 1] - ends[s]);
    for (size_t at = ends[s]; at < ends[s + 1]; ++at) {
      const uint64_t id = ids[order[at]];
      const auto place = seen.find_or_add(id, static_cast<uint32_t>(unique_.size()));
      if (place == unique_.size()) {
        unique_.push_back(id);
      }
      places_[order[at]] = place;
    }
  }
  begins_[kShards] = unique_.size();
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
  ARGOSY_CHECK(rows.size() == unique_.size() && out.size() == places_.size() * dim,
               "ps.ids",
               "expected {} rows for {} places of {} floats, got {} and {} floats",
               unique_.size(),
               places_.size(),
               dim,
               rows.size(),
               out.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    copy_row(&out[i * dim], rows[places_[i]], dim);
  }
}

void IdDeal::gather(std::span<const float> rows, size_t dim, std::span<float* const> sums) const {
  ARGOSY_CHECK(sums.size() == unique_.size() && rows.size() == places_.size() * dim,
               "ps.ids",
               "expected {} sums of {} rows of {} floats, got {} and {} floats",
               unique_.size(),
               places_.size(),
               dim,
               sums.size(),
               rows.size());
  std::vector<bool> begun(unique_.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    float* const sum = sums[places_[i]];
    const float* const row = &rows[i * dim];
    if (!begun[places_[i]]) {
      begun[places_[i]] = true;
      copy_row(sum, row, dim);
    } else {
      for (size_t d = 0; d < dim; ++d) {
        sum[d] += row[d];
      }
    }
  }
}

}  // namespace argosy::ps
