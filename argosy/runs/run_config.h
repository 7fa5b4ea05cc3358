#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace argosy::runs {

/// The state of a run. Only a reader finds kKilled: the run says that it is running, but its
/// process is gone.
enum class RunState { kRunning, kFinished, kStopped, kFailed, kKilled };

[[nodiscard]] const char* to_string(RunState state);  ///< "running", "finished", …

/// The machine of the first rank.
struct RunHost {
  std::string name{};
  std::string system{};  ///< "Linux 6.1.0 x86_64"
  std::string cpu{};     ///< the model's name
  int cores = 0;         ///< hardware threads that the process may use
  int physical_cores = 0;
  int64_t memory_bytes = 0;
  int64_t pid = 0;
  int64_t pid_start = 0;  ///< the kernel's clock ticks at its start; a pid may be used again
};

/// The git repository in which the program was started.
struct RunSources {
  std::string commit{};  ///< empty: no git repository, or no git
  std::string branch{};
  bool dirty = false;  ///< files of the repository differ from the commit
};

/// An end after which the run was resumed.
struct RunInterruption {
  RunState state = RunState::kKilled;  ///< how it ended: kKilled, kStopped or kFailed
  std::string message{};               ///< why it failed or stopped
  int64_t step = 0;                    ///< the step from which it was resumed
  std::chrono::system_clock::time_point resumed{};
};

/// Returns "killed, resumed at step 40 on 2026-03-01 12:00:00 UTC".
[[nodiscard]] std::string to_string(const RunInterruption& interruption);

/// How a run was made: the content of `run.json`. It repeats a run together with the program's
/// sources; what only they decide (layers, a loss of one's own, transforms) it does not hold.
///
///     RunConfig config = RunConfig::capture({.name = "cifar", .command = {argv, argv + argc}});
///     config.seed = 1;
///     config.options = {{"batch_size", 128}, {"lr", 0.1}};
///     write_run_config("runs/cifar", config);
///     … train …
///     config.end(RunState::kFinished);
///     write_run_config("runs/cifar", config);
///
/// A value. Times are kept to the millisecond.
struct RunConfig {
  std::string name{};
  RunState state = RunState::kRunning;
  std::string message{};  ///< why it failed or stopped
  std::optional<int> exit_code{};
  std::chrono::system_clock::time_point started{};
  std::optional<std::chrono::system_clock::time_point> ended{};
  std::vector<RunInterruption> interruptions{};
  std::vector<std::string> command{};
  std::string folder{};  ///< the working folder
  std::optional<uint64_t> seed{};
  int ranks = 1;
  /// The trainer's options under its own names, nested if it likes.
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  std::map<std::string, std::string> versions{};     ///< "argosy", "libtorch", "compiler" …
  std::map<std::string, std::string> environment{};  ///< variables that can change a run
  RunHost host{};
  RunSources sources{};

  struct CaptureOptions {
    std::string name{};
    std::vector<std::string> command{};  ///< empty: this process's command line
    int ranks = 1;
  };
  /// Returns the current time, host, working folder, environment, state of git and version of the
  /// compiler. Secrets (base/secrets.h) become "(hidden)".
  /// Cost: some 20 ms for git, which may take 2 s for each of three answers.
  [[nodiscard]] static RunConfig capture(CaptureOptions options);

  /// Takes over the start and the interruptions of `earlier`, and notes how that one ended.
  void resume(const RunConfig& earlier, int64_t step);
  /// Notes that the run ended now, and how.
  void end(RunState how, std::string why = "", std::optional<int> code = std::nullopt);
  /// Returns the time from the start to the end, or to now if the run is running.
  [[nodiscard]] std::chrono::duration<double> duration() const;
  /// Returns state, or kKilled if this host knows that the process is gone.
  [[nodiscard]] RunState observed_state() const;
};

[[nodiscard]] nlohmann::ordered_json to_json(const RunConfig& config);
/// Reads a RunConfig. Missing fields keep their defaults; unknown fields are ignored.
/// Errors: DataError "runs.config" with `path` if it is not an object, has a newer format, or a
/// field has another type.
[[nodiscard]] RunConfig run_config_from_json(const nlohmann::ordered_json& json,
                                             const std::string& path = "");

/// Writes `folder`/run.json, whole or not at all, and makes the folder. Errors: DataError
/// "runs.write" with the path.
void write_run_config(const std::string& folder, const RunConfig& config);
/// Reads `folder`/run.json. Errors: DataError "runs.config" with the path if the file is missing,
/// torn, or has another format.
[[nodiscard]] RunConfig read_run_config(const std::string& folder);

}  // namespace argosy::runs
