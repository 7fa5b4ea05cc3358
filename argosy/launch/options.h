#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::launch {

/// How long ranks may take to stop after SIGTERM or SIGINT before SIGKILL: enough to write a
/// checkpoint of a few GB, well below the 30 s after which Slurm and Kubernetes kill everything
/// (torchrun waits those 30 s itself and is then killed before it can report).
inline constexpr std::chrono::seconds kShutdownTimeout{5};

/// What `argosy launch` was asked to do.
struct LaunchOptions {
  std::string nproc_per_node = "1";  ///< number, "auto", "cpu" or "gpu"; see processes_per_node()
  /// Rank logs go to <log_dir>/<run>/, which is made when the first rank writes something; empty:
  /// no files.
  std::string log_dir = "runs";
  bool log_dir_given = false;  ///< then a folder that cannot be made is an error, not a warning
  std::chrono::milliseconds shutdown_timeout = kShutdownTimeout;
  /// How long, once all ranks have ended, a reader of the launcher's output (a pager) may take
  /// nothing before the rest is dropped; the rank logs have it.
  std::chrono::milliseconds reader_patience = std::chrono::minutes(10);
  std::vector<std::string> command{};  ///< program and its arguments, untouched
};

/// Options, or the text that --help asks for.
struct ParsedLaunch {
  LaunchOptions options{};
  std::optional<std::string> help{};
};

/// Reads what follows `argosy launch`. Dashes and underscores in option names mean the same;
/// everything from the program's name on belongs to the program.
/// Errors: UsageError: unknown option (with the nearest known one), one of other launchers' that
/// does not work yet, bad value, no program.
[[nodiscard]] ParsedLaunch parse_launch(const std::vector<std::string>& args);

}  // namespace argosy::launch
