#include "argosy/transport/rank_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "argosy/base/strings.h"

namespace argosy::transport {

RankNames::RankNames(std::vector<int> world_ranks) {
  for (size_t rank = 0; rank < world_ranks.size(); ++rank) {
    if (world_ranks[rank] != static_cast<int>(rank)) {
      world_ranks_ = std::move(world_ranks);
      return;
    }
  }
}

std::string RankNames::suffix(int rank) const {
  const auto i = static_cast<size_t>(rank);
  return rank < 0 || i >= world_ranks_.size() ? ""
                                              : fmt::format(" (world rank {})", world_ranks_[i]);
}

std::string RankNames::one(int rank) const {
  return fmt::format("rank {}{}", rank, suffix(rank));
}

std::string RankNames::several(const std::vector<int>& ranks) const {
  if (ranks.size() == 1) {
    return one(ranks.front());
  }
  std::string text = fmt::format("ranks {}", strings::ranges(ranks));
  if (!world_ranks_.empty()) {
    std::vector<int> world;
    for (const int rank : ranks) {
      world.push_back(world_ranks_.at(static_cast<size_t>(rank)));
    }
    text += fmt::format(" (world ranks {})", fmt::join(world, ", "));  // in the order of the group
  }
  return text;
}

int RankNames::from_world(int world_rank, int size) const {
  if (world_ranks_.empty()) {
    return world_rank >= 0 && world_rank < size ? world_rank : -1;
  }
  const auto found = std::find(world_ranks_.begin(), world_ranks_.end(), world_rank);
  return found == world_ranks_.end() ? -1 : static_cast<int>(found - world_ranks_.begin());
}

}  // namespace argosy::transport
