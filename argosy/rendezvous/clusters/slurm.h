#pragma once

#include <string>
#include <vector>

#include "argosy/rendezvous/clusters/cluster.h"

namespace argosy::rendezvous::clusters {

/// Returns "slurm-17.0", made of job and step. "": this process is in no step of Slurm.
[[nodiscard]] std::string slurm_step(const Lookup& lookup);
/// Returns the hosts of the allocation in its order. Empty: this process is not in Slurm. The step
/// names fewer hosts for a rank of mpirun, because mpirun's daemons are a step on the other hosts
/// only.
[[nodiscard]] std::vector<std::string> allocated_hosts(const Lookup& lookup);

/// A task that srun has started.
class Slurm final : public Cluster {
 public:
  [[nodiscard]] std::optional<ClusterTask> task(const Lookup& lookup) const override;
};

}  // namespace argosy::rendezvous::clusters
