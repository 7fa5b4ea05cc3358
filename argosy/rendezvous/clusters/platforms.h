#pragma once

#include "argosy/rendezvous/clusters/cluster.h"

namespace argosy::rendezvous::clusters {

/// A pod of Kubeflow's PyTorchJob: RANK and WORLD_SIZE count pods there.
/// Untested with a real operator.
class PyTorchJob final : public Cluster {
 public:
  [[nodiscard]] std::optional<ClusterTask> task(const Lookup& lookup) const override;
  [[nodiscard]] bool starts_nodes() const override { return true; }
};

/// PaddleCloud, AI Studio, a PaddleJob of Kubernetes and platforms like them: the addresses of all
/// nodes, or the endpoints of all trainers (the first is where they meet), and one's own.
/// Untested with a real platform.
class PaddleCloud final : public Cluster {
 public:
  [[nodiscard]] std::optional<ClusterTask> task(const Lookup& lookup) const override;
  [[nodiscard]] bool starts_nodes() const override { return true; }
};

}  // namespace argosy::rendezvous::clusters
