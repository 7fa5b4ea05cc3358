#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "argosy/ps/shards.h"

namespace argosy::ps {

/// The ids of a batch, each once, in the order of their shards.
class IdDeal final {
 public:
  explicit IdDeal(std::span<const uint64_t> ids);

  /// Different ids, by shard; in a shard in the order in which they first appeared.
  [[nodiscard]] std::span<const uint64_t> ids() const { return unique_; }
  [[nodiscard]] std::span<const uint64_t> ids(const ShardRange& shards) const {
    return ids().subspan(begin(shards.first), begin(shards.last) - begin(shards.first));
  }
  /// Returns how many ids the shards before it have.
  [[nodiscard]] size_t begin(int shard) const { return begins_[static_cast<size_t>(shard)]; }
  /// Returns how many ids each of the shards has.
  [[nodiscard]] std::vector<uint32_t> counts(const ShardRange& shards) const;
  /// places()[i]: where the i-th id of the batch stands in ids().
  [[nodiscard]] std::span<const uint32_t> places() const { return places_; }

  /// Copies rows to the places of the batch, [n, dim]. `rows`: [unique], each of `dim` floats.
  void spread(std::span<const float* const> rows, size_t dim, std::span<float> out) const;
  /// Adds rows of the batch, [n, dim], that are of one id, in their order. `sums`: [unique], each
  /// of `dim` floats, which it writes.
  void gather(std::span<const float> rows, size_t dim, std::span<float* const> sums) const;

 private:
  std::vector<uint64_t> unique_{};
  std::vector<uint32_t> places_{};
  std::array<size_t, kShards + 1> begins_{};
};

}  // namespace argosy::ps
