#include "argosy/rendezvous/clusters/mpi.h"

#include <fmt/format.h>
#include <unistd.h>

#include "argosy/os/children.h"
#include "argosy/rendezvous/clusters/slurm.h"
#include "argosy/rendezvous/clusters/variables.h"

namespace argosy::rendezvous::clusters {

std::optional<ClusterTask> OpenMpi::task(const Lookup& lookup) const {
  const std::optional<int> rank = number(lookup, "OMPI_COMM_WORLD_RANK");
  if (!rank) {
    return std::nullopt;
  }
  return ClusterTask{
      .system = "OpenMPI",
      .task = *rank,
      .tasks = required(lookup, "OMPI_COMM_WORLD_SIZE", 1),
      .local_task = required(lookup, "OMPI_COMM_WORLD_LOCAL_RANK"),
      .local_tasks = required(lookup, "OMPI_COMM_WORLD_LOCAL_SIZE", 1),
      .hosts = allocated_hosts(lookup),  // it fills the nodes of an allocation in their order
      .job = "mpi-" + text(lookup, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})};
}

std::optional<ClusterTask> Mpich::task(const Lookup& lookup) const {
  const std::optional<int> rank = number(lookup, "PMI_RANK");
  // srun --mpi=pmi2 sets PMI_RANK as well; the local rank is Hydra's alone.
  const std::optional<int> local = number(lookup, "MPI_LOCALRANKID");
  if (!rank || !local) {
    return std::nullopt;
  }
  // Nothing that Hydra sets names the job. On one host the ranks have its proxy in common; on
  // several, without Slurm, only what the user says (MASTER_ADDR, MASTER_PORT).
  const std::string step = slurm_step(lookup);
  const std::string job =
      !step.empty() ? step
                    : std::to_string(os::ancestor_named("hydra_pmi_proxy").value_or(::getppid()));
  return ClusterTask{.system = "MPICH",
                     .task = *rank,
                     .tasks = required(lookup, "PMI_SIZE", 1),
                     .local_task = *local,
                     .local_tasks = required(lookup, "MPI_LOCALNRANKS", 1),
                     .hosts = allocated_hosts(lookup),
                     .job = "mpich-" + job};
}

}  // namespace argosy::rendezvous::clusters
