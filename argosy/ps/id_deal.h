#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "argosy/ps/shards.h"

namespace argosy::ps {

class ShardThreads;

/// The ids of a batch, each once, in the order of their shards. What several threads do has the
/// bits of one.
class IdDeal final {
 public:
  /// Lifetime: the threads stay.
  explicit IdDeal(std::span<const uint64_t> ids, const ShardThreads& threads = caller_alone());

  /// Different ids, by shard; in a shard in the order in which they first appeared.
  [[nodiscard]] std::span<const uint64_t> ids() const { return unique_; }
  [[nodiscard]] std::span<const uint64_t> ids(const ShardRange& shards) const {
    return ids().subspan(begin(shards.first), begin(shards.last) - begin(shards.first));
  }
  /// Returns how many ids the shards before it have.
  [[nodiscard]] size_t begin(int shard) const { return begins_[static_cast<size_t>(shard)]; }
  /// Returns how many ids each of the shards has.
  [[nodiscard]] std::vector<uint32_t> counts(const ShardRange& shards) const;
  /// Returns how many ids the batch has, each as often as it is there.
  [[nodiscard]] size_t size() const { return order_.size(); }
  /// Calls `visit(i, u)` for each place i of the batch, where the u-th of ids() stands: by shard,
  /// and in a shard in their order, so that u comes first when it is one more than all before.
  template <typename Visit>
  void for_each_place(size_t shard, Visit visit) const {
    for (size_t at = ends_[shard]; at < ends_[shard + 1]; ++at) {
      visit(order_[at], begins_[shard] + standing_[at]);
    }
  }

  /// Copies rows to the places of the batch, [n, dim]. `rows`: [unique], each of `dim` floats.
  void spread(std::span<const float* const> rows, size_t dim, std::span<float> out) const;
  /// Adds rows of the batch, [n, dim], that are of one id, in their order. `sums`: [unique], each
  /// of `dim` floats, which it writes.
  void gather(std::span<const float> rows, size_t dim, std::span<float* const> sums) const;

 private:
  static const ShardThreads& caller_alone();
  [[nodiscard]] std::vector<uint64_t> find_unique(std::span<const uint64_t> ids, size_t shard);

  const ShardThreads* threads_;
  std::vector<uint64_t> unique_{};
  std::vector<uint32_t> order_{};             ///< places of the batch, by shard
  std::vector<uint32_t> standing_{};          ///< of each of them: which of the shard's ids it is
  std::array<size_t, kShards + 1> ends_{};    ///< in order_, of the shards before
  std::array<size_t, kShards + 1> begins_{};  ///< likewise in unique_
};

}  // namespace argosy::ps
