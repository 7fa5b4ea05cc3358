#pragma once

#include <string>
#include <vector>

namespace argosy::transport {

/// How messages call the ranks of a group: "rank 1", or "rank 1 (world rank 3)" in a group whose
/// ranks are numbered differently from the job's.
class RankNames final {
 public:
  RankNames() = default;
  /// `world_ranks`: of the members, in the order of their ranks in the group; empty: the same.
  explicit RankNames(std::vector<int> world_ranks);

  [[nodiscard]] std::string one(int rank) const;
  /// "ranks 0, 2-4", "ranks 0, 1 (world ranks 2, 5)", "rank 1 (world rank 5)".
  [[nodiscard]] std::string several(const std::vector<int>& ranks) const;
  /// " (world rank 3)", or nothing.
  [[nodiscard]] std::string suffix(int rank) const;
  /// The rank in the group of a rank of the job; -1: it is no member. `size` is the group's.
  [[nodiscard]] int from_world(int world_rank, int size) const;

 private:
  std::vector<int> world_ranks_{};  // empty unless they differ from the group's
};

}  // namespace argosy::transport
