#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "argosy/rendezvous/environment.h"

// Internal: reads the variables of clusters.
namespace argosy::rendezvous::clusters {

/// Returns a whole number that is at least `low`. nullopt: the variable is unset. Errors:
/// ConfigError naming the variable.
[[nodiscard]] std::optional<int> number(const Lookup& lookup, const char* name, int low = 0);
/// Returns the same of a variable that must be set. Errors: ConfigError naming the variable.
[[nodiscard]] int required(const Lookup& lookup, const char* name, int low = 0);
/// Returns the first variable that is set. "": none is.
[[nodiscard]] std::string text(const Lookup& lookup, std::initializer_list<const char*> names);
/// Returns "slurm-17.0", made of job and step. "": this process is in no step of Slurm.
[[nodiscard]] std::string slurm_step(const Lookup& lookup);
/// Returns the hosts of the allocation in its order. Empty: this process is not in Slurm. The step
/// names fewer hosts for a rank of mpirun, because mpirun's daemons are a step on the other hosts
/// only.
[[nodiscard]] std::vector<std::string> allocated_hosts(const Lookup& lookup);

}  // namespace argosy::rendezvous::clusters
