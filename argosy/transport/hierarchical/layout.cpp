#include "argosy/transport/hierarchical/layout.h"

#include <algorithm>
#include <map>

namespace argosy::transport {

std::vector<int> HostLayout::lane(int place) const {
  std::vector<int> ranks;
  for (const std::vector<int>& host : members) {
    ranks.push_back(host[static_cast<size_t>(place)]);
  }
  return ranks;
}

HostLayout lay_out(const std::vector<int>& hosts) {
  HostLayout layout;
  std::map<int, int> numbers;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [found, added] = numbers.try_emplace(hosts[rank], layout.hosts());
    if (added) {
      layout.members.emplace_back();
    }
    std::vector<int>& members = layout.members[static_cast<size_t>(found->second)];
    layout.host.push_back(found->second);
    layout.place.push_back(static_cast<int>(members.size()));
    members.push_back(static_cast<int>(rank));
  }
  for (const std::vector<int>& members : layout.members) {
    const int size = static_cast<int>(members.size());
    layout.lanes = layout.lanes == 0 ? size : std::min(layout.lanes, size);
  }
  return layout;
}

}  // namespace argosy::transport
