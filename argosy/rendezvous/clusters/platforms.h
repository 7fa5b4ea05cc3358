#pragma once

#include "argosy/rendezvous/clusters/cluster.h"

namespace argosy::rendezvous::clusters {

/// A pod of Kubeflow's PyTorchJob, where RANK and WORLD_SIZE count pods. Untested with a real
/// operator.
class PyTorchJob final : public Cluster {
 public:
  [[nodiscard]] std::optional<ClusterTask> task(const Lookup& lookup) const override;
  [[nodiscard]] bool starts_nodes() const override { return true; }
};

/// PaddleCloud, AI Studio, a PaddleJob of Kubernetes and similar platforms. They give the addresses
/// of all nodes or the endpoints of all trainers, and one's own; the first is where they meet.
/// Untested with a real platform.
class PaddleCloud final : public Cluster {
 public:
  [[nodiscard]] std::optional<ClusterTask> task(const Lookup& lookup) const override;
  [[nodiscard]] bool starts_nodes() const override { return true; }
};

}  // namespace argosy::rendezvous::clusters
