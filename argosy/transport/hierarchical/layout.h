#pragma once

#include <cstddef>
#include <vector>

// Internal to the room.
namespace argosy::transport {

/// Who is where. A lane is one rank of each host, those of equal place on theirs; there are as many
/// lanes as the host with the fewest ranks has ranks.
struct HostLayout {
  std::vector<std::vector<int>> members{};  ///< of each host, in rank order; hosts by first rank
  std::vector<int> host{};                  ///< of each rank, as a place in `members`
  std::vector<int> place{};                 ///< of each rank, among the members of its host
  int lanes = 0;

  [[nodiscard]] int hosts() const { return static_cast<int>(members.size()); }
  [[nodiscard]] const std::vector<int>& neighbours(int rank) const {
    return members[static_cast<size_t>(host[static_cast<size_t>(rank)])];
  }
  [[nodiscard]] std::vector<int> lane(int place) const;
};

/// `hosts`: any numbers, one for each rank.
[[nodiscard]] HostLayout lay_out(const std::vector<int>& hosts);

}  // namespace argosy::transport
