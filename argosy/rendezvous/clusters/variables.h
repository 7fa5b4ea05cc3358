#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "argosy/rendezvous/environment.h"

// Internal: how clusters read their variables.
namespace argosy::rendezvous::clusters {

/// A whole number from `low`; nullopt: unset. Errors: ConfigError naming the variable.
[[nodiscard]] std::optional<int> number(const Lookup& lookup, const char* name, int low = 0);
/// The same of one that must be there.
[[nodiscard]] int required(const Lookup& lookup, const char* name, int low = 0);
/// The first that is set; "": none.
[[nodiscard]] std::string text(const Lookup& lookup, std::initializer_list<const char*> names);
/// "slurm-17.0", by job and step; "": not in a step of Slurm's.
[[nodiscard]] std::string slurm_step(const Lookup& lookup);
/// Hosts of the allocation, in its order; empty: not in Slurm. (The step's are fewer for a rank of
/// mpirun, whose daemons are a step on the other hosts only.)
[[nodiscard]] std::vector<std::string> allocated_hosts(const Lookup& lookup);

}  // namespace argosy::rendezvous::clusters
