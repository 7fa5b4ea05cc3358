#pragma once

#include <cstddef>
#include <vector>

// Internal to the room.
namespace argosy::transport {

/// The spread of the ranks over hosts. A lane is one rank of each host: those that have the same
/// place on their hosts. There are as many lanes as the smallest host has ranks.
struct HostLayout {
  std::vector<std::vector<int>> members{};  ///< ranks of each host; hosts in order of first rank
  std::vector<int> host{};                  ///< for each rank, its host's index in `members`
  std::vector<int> place{};                 ///< for each rank, its index on its host
  int lanes = 0;

  [[nodiscard]] int hosts() const { return static_cast<int>(members.size()); }
  [[nodiscard]] const std::vector<int>& neighbours(int rank) const {
    return members[static_cast<size_t>(host[static_cast<size_t>(rank)])];
  }
  [[nodiscard]] std::vector<int> lane(int place) const;
};

/// `hosts`: one number for each rank; equal numbers mean the same host.
[[nodiscard]] HostLayout lay_out(const std::vector<int>& hosts);

}  // namespace argosy::transport
