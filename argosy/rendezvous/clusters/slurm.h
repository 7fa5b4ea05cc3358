#pragma once

#include "argosy/rendezvous/clusters/cluster.h"

namespace argosy::rendezvous::clusters {

/// A task that srun has started.
class Slurm final : public Cluster {
 public:
  [[nodiscard]] std::optional<ClusterTask> task(const Lookup& lookup) const override;
};

}  // namespace argosy::rendezvous::clusters
