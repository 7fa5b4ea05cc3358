#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/launch/options.h"
#include "argosy/launch/spawn_error.h"

namespace argosy::launch {

/// The command for the program that the user named, or why there is none.
struct Program {
  std::vector<std::string> args{};
  /// The position of --local_rank=N among `args`. nullopt: it is not passed.
  std::optional<size_t> local_rank_at{};
  std::optional<SpawnError> error{};

  /// Returns the command of one rank.
  [[nodiscard]] std::vector<std::string> for_rank(int local_rank) const;
};

/// Finds the command. A name that ends in .py (or .pyxes, Paddle's) and a module (-m) run under the
/// Python of the environment, unbuffered (-u). That is $PYTHON_EXEC, as for torchrun; else that of
/// the environment (venv, conda) in which `launcher` lies; else that of $VIRTUAL_ENV; else python3
/// or python in PATH. Anything else is executed itself.
[[nodiscard]] Program find_command(const LaunchOptions& options,
                                   const Lookup& lookup,
                                   const std::filesystem::path& launcher = env::own_program());

/// Returns an option among the program's own arguments ("--nproc_per_node=2") that hardly any
/// program but a launcher has, so that the user probably misplaced it, or "" if there is none.
[[nodiscard]] std::string misplaced_option(const std::vector<std::string>& command);

}  // namespace argosy::launch
