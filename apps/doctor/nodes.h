#pragma once

#include <map>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// The findings of one rank on its node.
struct NodeFindings {
  int rank = 0;
  std::string host{};
  int node = -1;  ///< its number in the job; -1: not known
  std::vector<Finding> findings{};

  [[nodiscard]] std::string to_json() const;
  /// Errors: RendezvousError (not our form).
  [[nodiscard]] static NodeFindings from_json(const std::string& text);
};

/// Each rank tells what it found, and gets what all found. Collective. Errors: those of the store.
[[nodiscard]] std::vector<NodeFindings> exchange(rendezvous::Store& store,
                                                 const NodeFindings& own,
                                                 int ranks,
                                                 const Deadline& deadline);

/// Returns what is bad on any node, and what differs between nodes but should not (versions,
/// system, cores, limits). One rank of each node counts.
[[nodiscard]] std::vector<Finding> compare_nodes(const std::vector<NodeFindings>& all);

}  // namespace argosy::doctor
