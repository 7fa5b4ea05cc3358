#pragma once

#include <cstdint>

#include "argosy/ps/first_row.h"

namespace argosy::ps {

/// Into how many parts all tables are divided, whatever the number of servers. So neither the
/// numbers nor a checkpoint depend on it.
inline constexpr int kShards = 64;

/// Returns the shard of a row.
[[nodiscard]] constexpr int shard_of(uint64_t id) {
  return static_cast<int>(mixed(id) % kShards);  // RowIndex uses the high bits
}

/// The shards of one of `servers`: neighbours, as many as others have, or one more.
struct ShardRange {
  int first = 0;
  int last = 0;  ///< the one behind them

  [[nodiscard]] int count() const { return last - first; }
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};
[[nodiscard]] constexpr ShardRange shards_of(int server, int servers) {
  return {.first = kShards * server / servers, .last = kShards * (server + 1) / servers};
}

}  // namespace argosy::ps
