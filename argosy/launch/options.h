#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argosy/launch/log_layout.h"
#include "argosy/launch/options/given_options.h"
#include "argosy/launch/options/node_options.h"
#include "argosy/os/topology.h"
#include "argosy/rendezvous/tls.h"

namespace argosy::launch {

/// How long ranks may take to stop after SIGTERM or SIGINT, before SIGKILL. It is enough to write a
/// checkpoint of a few GB, and well below the 30 s after which Slurm and Kubernetes kill
/// everything. (torchrun waits those 30 s itself and is then killed before it can report.)
inline constexpr std::chrono::seconds kShutdownTimeout{5};

/// The command that this launcher stands in for. Options and variables are the same in all; only
/// defaults differ.
enum class Dialect {
  kArgosy,       ///< argosy launch
  kTorchrun,     ///< argosy torchrun
  kTorchLaunch,  ///< argosy torch-launch: python -m torch.distributed.launch; ranks get
                 ///< --local_rank=N
  kPaddle,       ///< argosy paddle-launch, fleetrun: a rank per GPU; logs in log/workerlog.<i>
};

/// Returns "launch", "torchrun", …
[[nodiscard]] std::string command_of(Dialect dialect);

/// The options of `argosy launch`. Each value is checked by itself. prepare_job() settles what
/// depends on the machine, such as the numbers of cores and GPUs.
struct LaunchOptions {
  /// A number, "auto", "cpu" or "gpu". Empty: one rank for each entry of `gpus`, else 1.
  std::string nproc_per_node{};
  bool rank_per_gpu =
      false;  ///< if nproc_per_node is empty: one rank for each visible GPU, if there are any
  std::vector<int> gpus{};  ///< numbers of this machine's GPUs; empty: all that are visible
  std::vector<std::pair<std::string, std::string>> env{};  ///< --env, for all ranks
  std::optional<int> servers{};  ///< of the ranks, the first: --server_num; nullopt: no such job
  std::string role = "default";
  uint16_t master_port = 0;  ///< port of rank 0's own store; 0: any free port
  NodeOptions nodes{};
  rendezvous::TlsChoice tls{};  ///< for the control plane
  /// A queue has started `local_tasks` launchers on this node, and this is number `local_task`.
  /// Each then starts one rank.
  int local_task = 0;
  int local_tasks = 1;
  bool one_output = false;  ///< all launchers of the job share one output
  std::string hostfile{};   ///< names the nodes, if no other option does
  bool ssh = false;         ///< start a launcher on each node
  /// Standard input connects this launcher to the process that started it by ssh. The launcher
  /// stops when a byte arrives or the other end is gone.
  bool leash = false;
  int threads = 0;  ///< cores that the queue gave to this launcher; 0: it does not say
  Dialect dialect = Dialect::kArgosy;
  bool through_srun =
      false;             ///< this launcher runs in a batch script, and srun starts the real ones
  std::string job_id{};  ///< --rdzv_id or --job_id; empty: the run's own id

  /// Rank logs go to <log_dir>/<run>/, which is made when the first rank writes something. Empty:
  /// no files.
  std::string log_dir = "runs";
  bool log_dir_given = false;  ///< a folder that cannot be made is then an error, not a warning
  LogLayout layout = LogLayout::kArgosy;
  bool log_overwrite = false;  ///< kPaddle only
  StreamChoice redirects{};
  StreamChoice tee{};
  std::vector<std::string> out_filters{};  ///< see LogPlan
  std::vector<std::string> err_filters{};
  std::vector<int> local_ranks_filter{};  ///< local ranks whose output is shown; empty: all
  std::string line_prefix = "[rank ${rank}] ";
  std::string json{};  ///< file for the report; empty: none
  bool dry_run = false;
  bool verbose = false;

  os::CpuBinding cpu_bind = os::CpuBinding::kNone;
  std::string cpu_capability{};  ///< see JobDescription
  int max_restarts = 0;
  bool restart_usage_errors = false;
  std::chrono::milliseconds shutdown_timeout = kShutdownTimeout;
  std::chrono::milliseconds heartbeat_timeout{0};  ///< 0: nobody watches
  /// When all ranks have ended, a reader of the launcher's output (a pager) may pause for this
  /// long. Then the rest is dropped; the logs have it.
  std::chrono::milliseconds reader_patience = std::chrono::minutes(10);

  bool virtual_local_rank = false;     ///< see JobDescription
  bool pass_local_rank = false;        ///< --local_rank=N comes before the program's arguments
  bool module = false;                 ///< -m: `command` starts with a Python module
  bool no_python = false;              ///< never put a Python before `command`
  std::vector<std::string> command{};  ///< program and its arguments, untouched
};

/// Options, or the text that --help asks for.
struct ParsedLaunch {
  LaunchOptions options{};
  GivenOptions given{};  ///< the options as the user wrote them
  std::optional<std::string> help{};
};

/// Reads the words after `argosy launch` and the variables that stand for options. The command line
/// overrides variables. docs/reference/launch_options.md lists all of them.
/// Errors: those of read_command_line(); UsageError for a bad value, naming the option or variable
/// as it was written; UsageError when there is no program.
[[nodiscard]] ParsedLaunch parse_launch(const std::vector<std::string>& args,
                                        const Lookup& lookup,
                                        Dialect dialect = Dialect::kArgosy);

}  // namespace argosy::launch
