#pragma once

#include "argosy/rendezvous/clusters/cluster.h"

namespace argosy::rendezvous::clusters {

/// A rank of OpenMPI's mpirun.
class OpenMpi final : public Cluster {
 public:
  [[nodiscard]] std::optional<ClusterTask> task(const Lookup& lookup) const override;
};

/// A rank of MPICH's mpiexec (Hydra) and of those that descend from it (Intel MPI).
class Mpich final : public Cluster {
 public:
  [[nodiscard]] std::optional<ClusterTask> task(const Lookup& lookup) const override;
};

}  // namespace argosy::rendezvous::clusters
