#pragma once

#include <string>
#include <vector>

namespace argosy::transport {

/// How messages call the ranks of a group: "rank 1", or "rank 1 (world rank 3)" when the ranks of
/// the group have other numbers in the job.
class RankNames final {
 public:
  RankNames() = default;
  /// `world_ranks`: the rank in the job of each rank of the group. Empty: the numbers are the same.
  explicit RankNames(std::vector<int> world_ranks);

  [[nodiscard]] std::string one(int rank) const;
  /// "ranks 0, 2-4", "ranks 0, 1 (world ranks 2, 5)", "rank 1 (world rank 5)".
  [[nodiscard]] std::string several(const std::vector<int>& ranks) const;
  /// Returns " (world rank 3)", or nothing when the numbers are the same.
  [[nodiscard]] std::string suffix(int rank) const;
  /// Returns the rank in the group of a rank of the job; -1 when it is no member. `size`: of the
  /// group.
  [[nodiscard]] int from_world(int world_rank, int size) const;

 private:
  std::vector<int> world_ranks_{};  // empty unless they differ from the group's
};

}  // namespace argosy::transport
