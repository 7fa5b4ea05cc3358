#include "argosy/launch/options/option_rows.h"

#include <algorithm>
#include <array>

#include "argosy/base/strings.h"

namespace argosy::launch {
namespace {

constexpr auto kBoth = Origin::kBoth;
constexpr auto kTorchrun = Origin::kTorchrun;
constexpr auto kPaddle = Origin::kPaddle;
constexpr auto kArgosy = Origin::kArgosy;
constexpr auto kSame = Treatment::kSame;
constexpr auto kBetter = Treatment::kBetter;
constexpr auto kNoEffect = Treatment::kNoEffect;
constexpr auto kRefused = Treatment::kRefused;

constexpr std::string_view kRanks = "Ranks";
constexpr std::string_view kNodes = "Nodes";
constexpr std::string_view kOutput = "Output";
constexpr std::string_view kFailures = "Failures";
constexpr std::string_view kOptionRowsHidden = "";

constexpr std::string_view kNoServers =
    "parameter servers do not exist here; only collective training does";
constexpr std::string_view kOldElastic =
    "of Paddle's former launcher, which this one is not; elastic sizes do not exist yet";

// clang-format off
constexpr auto kRows = std::to_array<OptionRow>({
  {"--nproc_per_node -n", "N|auto|cpu|gpu", kBoth, "PET_NPROC_PER_NODE PADDLE_NPROC_PER_NODE", kSame, kRanks,
   "Ranks on this node: a number; cpu: one per core; gpu: one per GPU; auto: gpu where there are GPUs, else cpu. Default: one per GPU of --gpus, else 1"},
  {"--gpus --devices --selected_gpus", "LIST", kPaddle, "PADDLE_DEVICES", kBetter, kRanks,
   "GPUs to use, by their numbers (0,2): CUDA_VISIBLE_DEVICES of all ranks, each of which takes that of its LOCAL_RANK. One rank for each unless --nproc_per_node says otherwise; where no NVIDIA GPU is visible (ROCm, CPU) the same, with a warning"},
  {"--module -m", "", kTorchrun, "PET_MODULE", kSame, kRanks, "The program is a Python module: python -u -m program"},
  {"--no_python", "", kTorchrun, "PET_NO_PYTHON", kSame, kRanks, "Execute the program itself even if its name ends in .py"},
  {"--env", "NAME=VALUE", kArgosy, "", kSame, kRanks, "Set a variable for all ranks; repeat it for more"},
  {"--cpu_bind --bind --numa_binding", "none|cores|numa|socket", kTorchrun, "PET_NUMA_BINDING", kBetter, kRanks,
   "Bind each rank to cores of its own, or to those of one NUMA node or socket (torchrun's words: exclusive, node; core-complex does not exist here). Default: none"},
  {"--role", "NAME", kTorchrun, "PET_ROLE", kSame, kRanks, "ROLE_NAME of the ranks. Default: default"},

  {"--nnodes", "N", kBoth, "PET_NNODES PADDLE_NNODES", kBetter, kNodes, "Nodes of the job, each of which runs this command; they may have different numbers of ranks. Default: 1. A range (2:4) does not work yet"},
  {"--node_rank --rank", "N", kBoth, "PET_NODE_RANK PADDLE_RANK JOB_COMPLETION_INDEX", kSame, kNodes, "This node's number, 0 to nodes - 1; node 0 hosts the meeting. Default: in the order of --ips, else as the nodes come"},
  {"--master_addr", "HOST", kTorchrun, "PET_MASTER_ADDR", kSame, kNodes, "Where the nodes meet, with --master_port (29500): an address of node 0"},
  {"--master_port", "PORT", kTorchrun, "PET_MASTER_PORT", kBetter, kNodes, "With one node MASTER_PORT, that of rank 0's own store (default: one that is free, held from the start); with several the port where the nodes meet"},
  {"--master", "HOST:PORT", kPaddle, "PADDLE_MASTER", kBetter, kNodes, "Where the nodes meet, with a time limit"},
  {"--ips --cluster_node_ips", "LIST", kPaddle, "PADDLE_IPS", kBetter, kNodes, "Addresses of all nodes, the same list on each, in the order of their numbers"},
  {"--host --node_ip --local_addr", "ADDRESS", kBoth, "POD_IP PET_LOCAL_ADDR", kSame, kNodes, "This node's address. Default: that of --ips, else the one that leads to node 0"},
  {"--ifname", "NAME", kArgosy, "ARGOSY_IFNAME", kSame, kNodes, "This node's address is that of this interface (eth0); the ranks talk through it as well"},
  {"--listen", "ADDRESS", kArgosy, "", kSame, kOptionRowsHidden, "Where node 0 listens; 0.0.0.0: on all interfaces. Default: only at the address where the others meet it"},
  {"--hostfile", "FILE", kArgosy, "", kSame, kNodes, "The nodes, one on each line: HOST, HOST slots=N or HOST:N (N ranks). Instead of --ips; or with --ssh"},
  {"--ssh", "", kArgosy, "", kSame, kNodes, "Start the launchers on the hosts of --hostfile from here, by ssh (or $ARGOSY_SSH_COMMAND)"},
  {"--leash", "", kArgosy, "", kSame, kOptionRowsHidden, "Stop when standard input says or ends; --ssh gives it"},
  {"--start_port --started_port", "PORT", kPaddle, "PADDLE_START_PORT FLAGS_START_PORT", kBetter, kOptionRowsHidden, "With --ips: the nodes meet at the port before it (6069). The ranks' endpoints are ports that are held from the start"},
  {"--rdzv_endpoint", "HOST[:PORT]", kTorchrun, "PET_RDZV_ENDPOINT", kSame, kNodes, "Where the nodes meet; the one with that address hosts it. Default port: 29400"},
  {"--rdzv_id --job_id", "ID", kBoth, "PET_RDZV_ID PADDLE_JOB_ID", kSame, kNodes, "Name of the job (TORCHELASTIC_RUN_ID)"},
  {"--rdzv_backend", "NAME", kTorchrun, "PET_RDZV_BACKEND", kSame, kOptionRowsHidden, "static or c10d: nodes meet in the launcher of node 0 either way; etcd and others are refused"},
  {"--rdzv_conf", "LIST", kTorchrun, "PET_RDZV_CONF", kBetter, kOptionRowsHidden, "join_timeout (as --timeout), keep_alive_interval and keep_alive_max_attempt count; the others are of torchrun's store, which is not used"},
  {"--keep_alive_interval", "SECONDS", kArgosy, "", kSame, kNodes, "How often launchers tell node 0's that they live. Default: 0.5"},
  {"--keep_alive_max_attempt", "N", kArgosy, "", kSame, kNodes, "After how many such intervals of silence a node is lost. Default: 5 (torchrun's are 5 s and 3)"},
  {"--tls", "", kArgosy, "ARGOSY_TLS", kSame, kNodes, "Encrypt what launchers and ranks tell each other (not what collectives send), with certificates made from ARGOSY_TOKEN, which both sides must know"},
  {"--tls_cert", "FILE", kArgosy, "ARGOSY_TLS_CERT", kSame, kOptionRowsHidden, "--tls with certificates of your own (PEM): this node's"},
  {"--tls_key", "FILE", kArgosy, "ARGOSY_TLS_KEY", kSame, kOptionRowsHidden, "its key (PEM, no passphrase)"},
  {"--tls_ca", "FILE", kArgosy, "ARGOSY_TLS_CA", kSame, kOptionRowsHidden, "who must have signed the certificates of all nodes (PEM)"},
  {"--tls_name", "NAME", kArgosy, "ARGOSY_TLS_NAME", kSame, kOptionRowsHidden, "the name in node 0's certificate. Default: the host as it is called where the nodes meet"},
  {"--standalone", "", kTorchrun, "PET_STANDALONE", kSame, kOptionRowsHidden, "One node, whatever the environment says"},
  {"--sort_ip", "BOOL", kPaddle, "PADDLE_SORT_IP", kBetter, kOptionRowsHidden, "false; true is refused: nodes are numbered by --node_rank, by the order of --ips, or as they come"},
  {"--use_paddlecloud", "", kPaddle, "", kNoEffect, kOptionRowsHidden, "the platform's variables are read without it"},
  {"--run_mode", "MODE", kPaddle, "PADDLE_RUN_MODE", kSame, kOptionRowsHidden, "collective; ps, ps-heter and rpc are refused"},

  {"--log_dir", "DIR", kBoth, "PET_LOG_DIR PADDLE_LOG_DIR", kBetter, kOutput,
   "Also write what each rank prints to DIR/<run>/rank<k>.log; \"\": no files. Default: runs"},
  {"--redirects -r", "N|MAP", kTorchrun, "PET_REDIRECTS", kSame, kOptionRowsHidden, "Streams that go to files only: 1 standard output, 2 standard error, 3 both, or for each local rank 0:3,1:1; files as torchrun's: DIR/<id>_<run>/attempt_<n>/<local rank>/stdout.log"},
  {"--tee -t", "N|MAP", kTorchrun, "PET_TEE", kSame, kOptionRowsHidden, "Streams that go to such files too"},
  {"--local_ranks_filter", "LIST", kTorchrun, "PET_LOCAL_RANKS_FILTER", kSame, kOutput, "Show the output of these local ranks only (0,2); the files have all"},
  {"--log_line_prefix_template", "TEXT", kTorchrun, "PET_LOG_LINE_PREFIX_TEMPLATE TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", kBetter, kOutput,
   "What stands before each line: ${rank}, ${local_rank}, ${role_name}. Default: \"[rank ${rank}] \""},
  {"--json", "FILE", kArgosy, "", kSame, kOutput, "Write how the job ended to FILE, for programs"},
  {"--dry_run", "", kArgosy, "", kSame, kOutput, "Print what would be started, and start nothing"},
  {"--verbose", "", kArgosy, "", kSame, kOutput, "Print at the start how the CPUs are set up, and the whole environment of the ranks"},
  {"--log_overwrite", "BOOL", kPaddle, "PADDLE_LOG_OVERWRITE", kSame, kOptionRowsHidden, "Empty Paddle's workerlog.<i> first; they are appended to otherwise. Our own runs have a folder each"},
  {"--log_level", "LEVEL", kPaddle, "PADDLE_LOG_LEVEL", kNoEffect, kOptionRowsHidden, "ARGOSY_LOG says how much of our log is written"},
  {"--enable_gpu_log", "BOOL", kPaddle, "", kNoEffect, kOptionRowsHidden, "GPUs are not sampled"},
  {"--event_log_handler", "NAME", kTorchrun, "PET_EVENT_LOG_HANDLER", kNoEffect, kOptionRowsHidden, "torchrun's own events do not exist here"},
  {"--logs_specs", "NAME", kTorchrun, "PET_LOGS_SPECS", kRefused, kOptionRowsHidden, "a class inside torchrun; see --log_dir"},
  {"--duplicate_stdout_filters", "LIST", kTorchrun, "PET_DUPLICATE_STDOUT_FILTERS", kBetter, kOptionRowsHidden, "Lines with one of these texts (a,b; ,, is a comma) go to filtered_stdout.log beside the rank logs too; --tee is not needed"},
  {"--duplicate_stderr_filters", "LIST", kTorchrun, "PET_DUPLICATE_STDERR_FILTERS", kBetter, kOptionRowsHidden, "The same of standard error: filtered_stderr.log"},
  {"--print_completion", "", kTorchrun, "", kRefused, kOptionRowsHidden, "shell completion of torchrun"},

  {"--max_restarts --max_restart", "N", kBoth, "PET_MAX_RESTARTS PADDLE_MAX_RESTART", kSame, kFailures, "Start all ranks again when one fails, N times at most; each finds how often in TORCHELASTIC_RESTART_COUNT. Default: 0 (Paddle's is 3, with etcd only)"},
  {"--restart_usage_errors", "", kArgosy, "", kSame, kFailures, "Restart after exit codes 2, 126 and 127 too, which usually come again"},
  {"--shutdown_timeout", "SECONDS", kTorchrun, "PET_SHUTDOWN_TIMEOUT TORCH_ELASTIC_SHUTDOWN_TIMEOUT", kBetter, kFailures,
   "Seconds that ranks have to stop before they are killed. Default: 5 (torchrun's 30 are what Slurm and Kubernetes leave it, so it never reports)"},
  {"--heartbeat_timeout", "SECONDS", kArgosy, "", kSame, kFailures,
   "A rank that begins and ends no operation for so long, and waits in none, hangs: it is ended by SIGABRT, which shows where it stands. For programs that use the library. Default: 0 (never)"},
  {"--monitor_interval", "SECONDS", kTorchrun, "PET_MONITOR_INTERVAL", kNoEffect, kOptionRowsHidden, "the kernel tells at once when a rank ends; nothing is polled"},
  {"--start_method", "METHOD", kTorchrun, "PET_START_METHOD", kNoEffect, kOptionRowsHidden, "ranks are programs of their own, never forks of the launcher"},
  {"--run_path", "", kTorchrun, "PET_RUN_PATH", kNoEffect, kOptionRowsHidden, "each rank runs the script in an interpreter of its own"},
  {"--signals_to_handle", "LIST", kTorchrun, "PET_SIGNALS_TO_HANDLE", kNoEffect, kOptionRowsHidden, "SIGTERM, SIGINT, SIGHUP and SIGQUIT stop the job; the others pass"},
  {"--virtual_local_rank", "", kTorchrun, "PET_VIRTUAL_LOCAL_RANK", kSame, kOptionRowsHidden, "LOCAL_RANK 0 for all, one GPU visible to each"},
  {"--elastic_level", "N", kPaddle, "PADDLE_ELASTIC_LEVEL", kNoEffect, kOptionRowsHidden, "--max_restarts says whether to restart"},
  {"--timeout --elastic_timeout", "SECONDS", kArgosy, "PADDLE_ELASTIC_TIMEOUT", kSame, kNodes, "How long nodes wait for each other. Default: 300"},
  {"--use_env", "", kTorchrun, "", kNoEffect, kOptionRowsHidden, "of torch.distributed.launch: ranks always find LOCAL_RANK in the environment; without it torch-launch also gives the program --local_rank=N, spelt as before PyTorch 2.0"},
  {"--legacy", "BOOL", kPaddle, "", kSame, kOptionRowsHidden, "false; true is refused, for there is no former launcher to fall back to"},

  {"--servers", "LIST", kPaddle, "PADDLE_SERVERS_ENDPOINTS", kRefused, kOptionRowsHidden, kNoServers},
  {"--trainers --workers", "LIST", kPaddle, "PADDLE_TRAINERS_ENDPOINTS", kRefused, kOptionRowsHidden, kNoServers},
  {"--server_num", "N", kPaddle, "PADDLE_SERVER_NUM", kRefused, kOptionRowsHidden, kNoServers},
  {"--trainer_num --worker_num", "N", kPaddle, "PADDLE_TRAINER_NUM", kRefused, kOptionRowsHidden, kNoServers},
  {"--heter_workers", "LIST", kPaddle, "", kRefused, kOptionRowsHidden, kNoServers},
  {"--heter_worker_num", "N", kPaddle, "", kRefused, kOptionRowsHidden, kNoServers},
  {"--heter_devices", "LIST", kPaddle, "", kRefused, kOptionRowsHidden, kNoServers},
  {"--gloo_port --http_port", "PORT", kPaddle, "PADDLE_GLOO_PORT", kRefused, kOptionRowsHidden, kNoServers},
  {"--with_gloo", "N", kPaddle, "PADDLE_WITH_GLOO", kRefused, kOptionRowsHidden, kNoServers},
  {"--elastic_server", "HOST:PORT", kPaddle, "PADDLE_ELASTIC_SERVER", kRefused, kOptionRowsHidden, kOldElastic},
  {"--np", "N", kPaddle, "PADDLE_ELASTIC_NP", kRefused, kOptionRowsHidden, kOldElastic},
  {"--scale", "N", kPaddle, "PADDLE_ELASTIC_SCALE", kRefused, kOptionRowsHidden, kOldElastic},
  {"--force", "BOOL", kPaddle, "PADDLE_ELASTIC_FORCE", kRefused, kOptionRowsHidden, kOldElastic},
  {"--elastic_pre_hook", "COMMAND", kPaddle, "", kRefused, kOptionRowsHidden, kOldElastic},
  {"--auto_tuner_json", "FILE", kPaddle, "", kRefused, kOptionRowsHidden, "the auto-tuner is part of Paddle's hybrid parallelism"},
  {"--auto_parallel_config", "FILE", kPaddle, "PADDLE_AUTO_PARALLEL_CONFIG", kRefused, kOptionRowsHidden, "auto-parallel is part of Paddle"},
  {"--auto_cluster_config", "BOOL", kPaddle, "PADDLE_AUTO_CLUSTER", kRefused, kOptionRowsHidden, "auto-parallel is part of Paddle"},
  {"--npus --xpus", "LIST", kPaddle, "", kRefused, kOptionRowsHidden, "only NVIDIA GPUs and CPUs are known; see --gpus"},
});
// clang-format on

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found = strings::split(text, ' ');
  std::erase(found, "");
  return found;
}

}  // namespace

std::string_view OptionRow::key() const {
  const std::string_view first = names.substr(0, names.find(' '));
  return first.substr(first.find_first_not_of('-'));
}

std::vector<std::string> OptionRow::all_names() const {
  return words(names);
}

std::vector<std::string> OptionRow::all_variables() const {
  return words(variables);
}

std::span<const OptionRow> option_rows() {
  return kRows;
}

const OptionRow* find_option(std::string_view name) {
  const auto found = std::ranges::find_if(kRows, [&](const OptionRow& row) {
    return std::ranges::any_of(words(row.names),
                               [&](const std::string& known) { return known == name; });
  });
  return found == kRows.end() ? nullptr : &*found;
}

}  // namespace argosy::launch
