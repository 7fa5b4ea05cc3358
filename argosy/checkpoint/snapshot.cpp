#include "argosy/checkpoint/snapshot.h"

#include <algorithm>

namespace argosy::checkpoint {

const engine::StateDict* Snapshot::find(std::string_view part) const {
  const auto place =
      std::ranges::find(parts, part, &std::pair<std::string, engine::StateDict>::first);
  return place == parts.end() ? nullptr : &place->second;
}

}  // namespace argosy::checkpoint
