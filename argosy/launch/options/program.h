#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/options.h"
#include "argosy/launch/spawn_error.h"

namespace argosy::launch {

/// What to execute for the program that the user named, or why there is nothing to execute.
struct Program {
  std::vector<std::string> args{};
  /// Where --local_rank=N goes for each rank; nullopt: nowhere.
  std::optional<size_t> local_rank_at{};
  std::optional<SpawnError> error{};

  /// The command of one rank.
  [[nodiscard]] std::vector<std::string> for_rank(int local_rank) const;
};

/// A name that ends in .py (or .pyxes, Paddle's) and a module (-m) run under the Python of the
/// environment, unbuffered (-u): $PYTHON_EXEC, as for torchrun; that of $VIRTUAL_ENV; python3 or
/// python in PATH. Anything else is executed.
[[nodiscard]] Program find_command(const LaunchOptions& options, const Lookup& lookup);

/// An option that hardly any program but a launcher has, among the program's own arguments
/// ("--nproc_per_node=2"); "": none. It does not do there what whoever wrote it meant.
[[nodiscard]] std::string misplaced_option(const std::vector<std::string>& command);

}  // namespace argosy::launch
