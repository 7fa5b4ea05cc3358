#include "argosy/launch/options/option_rows.h"

#include <array>

namespace argosy::launch {
namespace {

using program::Origin;
using program::Treatment;

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
constexpr auto kRows = std::to_array<program::Option>({
  {"--nproc_per_node -n", "N|auto|cpu|gpu", "Ranks on this node: a number; cpu: one per core; gpu: one per GPU; auto: gpu where there are GPUs, else cpu. Default: one per GPU of --gpus, else 1", {}, {}, kRanks, "PET_NPROC_PER_NODE PADDLE_NPROC_PER_NODE", kBoth, kSame},
  {"--gpus --devices --selected_gpus", "LIST", "GPUs to use, by their numbers (0,2): CUDA_VISIBLE_DEVICES of all ranks, each of which takes that of its LOCAL_RANK. One rank for each unless --nproc_per_node says otherwise; where no NVIDIA GPU is visible (ROCm, CPU) the same, with a warning", {}, {}, kRanks, "PADDLE_DEVICES", kPaddle, kBetter},
  {"--module -m", "", "The program is a Python module: python -u -m program", {}, {}, kRanks, "PET_MODULE", kTorchrun, kSame},
  {"--no_python", "", "Execute the program itself even if its name ends in .py", {}, {}, kRanks, "PET_NO_PYTHON", kTorchrun, kSame},
  {"--env", "NAME=VALUE", "Set a variable for all ranks; repeat it for more", {}, {}, kRanks, "", kArgosy, kSame},
  {"--cpu_bind --bind --numa_binding", "none|cores|numa|socket", "Bind each rank to cores of its own, or to those of one NUMA node or socket (torchrun's words: exclusive, node; core-complex does not exist here). Default: none", {}, {}, kRanks, "PET_NUMA_BINDING", kTorchrun, kBetter},
  {"--role", "NAME", "ROLE_NAME of the ranks. Default: default", {}, {}, kRanks, "PET_ROLE", kTorchrun, kSame},

  {"--nnodes", "N", "Nodes of the job, each of which runs this command; they may have different numbers of ranks. Default: 1. A range (2:4) does not work yet", {}, {}, kNodes, "PET_NNODES PADDLE_NNODES", kBoth, kBetter},
  {"--node_rank --rank", "N", "This node's number, 0 to nodes - 1; node 0 hosts the meeting. Default: in the order of --ips, else as the nodes come", {}, {}, kNodes, "PET_NODE_RANK PADDLE_RANK JOB_COMPLETION_INDEX", kBoth, kSame},
  {"--master_addr", "HOST", "Where the nodes meet, with --master_port (29500): an address of node 0", {}, {}, kNodes, "PET_MASTER_ADDR", kTorchrun, kSame},
  {"--master_port", "PORT", "With one node MASTER_PORT, that of rank 0's own store (default: one that is free, held from the start); with several the port where the nodes meet", {}, {}, kNodes, "PET_MASTER_PORT", kTorchrun, kBetter},
  {"--master", "HOST:PORT", "Where the nodes meet, with a time limit", {}, {}, kNodes, "PADDLE_MASTER", kPaddle, kBetter},
  {"--ips --cluster_node_ips", "LIST", "Addresses of all nodes, the same list on each, in the order of their numbers", {}, {}, kNodes, "PADDLE_IPS", kPaddle, kBetter},
  {"--host --node_ip --local_addr", "ADDRESS", "This node's address. Default: that of --ips, else the one that leads to node 0", {}, {}, kNodes, "POD_IP PET_LOCAL_ADDR", kBoth, kSame},
  {"--ifname", "NAME", "This node's address is that of this interface (eth0); the ranks talk through it as well", {}, {}, kNodes, "ARGOSY_IFNAME", kArgosy, kSame},
  {"--listen", "ADDRESS", "Where node 0 listens; 0.0.0.0: on all interfaces. Default: only at the address where the others meet it", {}, {}, kOptionRowsHidden, "", kArgosy, kSame},
  {"--hostfile", "FILE", "The nodes, one on each line: HOST, HOST slots=N or HOST:N (N ranks). Instead of --ips; or with --ssh", {}, {}, kNodes, "", kArgosy, kSame},
  {"--ssh", "", "Start the launchers on the hosts of --hostfile from here, by ssh (or $ARGOSY_SSH_COMMAND)", {}, {}, kNodes, "", kArgosy, kSame},
  {"--leash", "", "Stop when standard input says or ends; --ssh gives it", {}, {}, kOptionRowsHidden, "", kArgosy, kSame},
  {"--start_port --started_port", "PORT", "With --ips: the nodes meet at the port before it (6069). The ranks' endpoints are ports that are held from the start", {}, {}, kOptionRowsHidden, "PADDLE_START_PORT FLAGS_START_PORT", kPaddle, kBetter},
  {"--rdzv_endpoint", "HOST[:PORT]", "Where the nodes meet; the one with that address hosts it. Default port: 29400", {}, {}, kNodes, "PET_RDZV_ENDPOINT", kTorchrun, kSame},
  {"--rdzv_id --job_id", "ID", "Name of the job (TORCHELASTIC_RUN_ID)", {}, {}, kNodes, "PET_RDZV_ID PADDLE_JOB_ID", kBoth, kSame},
  {"--rdzv_backend", "NAME", "static or c10d: nodes meet in the launcher of node 0 either way; etcd and others are refused", {}, {}, kOptionRowsHidden, "PET_RDZV_BACKEND", kTorchrun, kSame},
  {"--rdzv_conf", "LIST", "join_timeout (as --timeout), keep_alive_interval and keep_alive_max_attempt count; the others are of torchrun's store, which is not used", {}, {}, kOptionRowsHidden, "PET_RDZV_CONF", kTorchrun, kBetter},
  {"--keep_alive_interval", "SECONDS", "How often launchers tell node 0's that they live. Default: 0.5", {}, {}, kNodes, "", kArgosy, kSame},
  {"--keep_alive_max_attempt", "N", "After how many such intervals of silence a node is lost. Default: 5 (torchrun's are 5 s and 3)", {}, {}, kNodes, "", kArgosy, kSame},
  {"--tls", "", "Encrypt what launchers and ranks tell each other (not what collectives send), with certificates made from ARGOSY_TOKEN, which both sides must know", {}, {}, kNodes, "ARGOSY_TLS", kArgosy, kSame},
  {"--tls_cert", "FILE", "--tls with certificates of your own (PEM): this node's", {}, {}, kOptionRowsHidden, "ARGOSY_TLS_CERT", kArgosy, kSame},
  {"--tls_key", "FILE", "its key (PEM, no passphrase)", {}, {}, kOptionRowsHidden, "ARGOSY_TLS_KEY", kArgosy, kSame},
  {"--tls_ca", "FILE", "who must have signed the certificates of all nodes (PEM)", {}, {}, kOptionRowsHidden, "ARGOSY_TLS_CA", kArgosy, kSame},
  {"--tls_name", "NAME", "the name in node 0's certificate. Default: the host as it is called where the nodes meet", {}, {}, kOptionRowsHidden, "ARGOSY_TLS_NAME", kArgosy, kSame},
  {"--standalone", "", "One node, whatever the environment says", {}, {}, kOptionRowsHidden, "PET_STANDALONE", kTorchrun, kSame},
  {"--sort_ip", "BOOL", "false; true is refused: nodes are numbered by --node_rank, by the order of --ips, or as they come", {}, {}, kOptionRowsHidden, "PADDLE_SORT_IP", kPaddle, kBetter},
  {"--use_paddlecloud", "", "the platform's variables are read without it", {}, {}, kOptionRowsHidden, "", kPaddle, kNoEffect},
  {"--run_mode", "MODE", "collective; ps, ps-heter and rpc are refused", {}, {}, kOptionRowsHidden, "PADDLE_RUN_MODE", kPaddle, kSame},

  {"--log_dir", "DIR", "Also write what each rank prints to DIR/<run>/rank<k>.log; \"\": no files. Default: runs", {}, {}, kOutput, "PET_LOG_DIR PADDLE_LOG_DIR", kBoth, kBetter},
  {"--redirects -r", "N|MAP", "Streams that go to files only: 1 standard output, 2 standard error, 3 both, or for each local rank 0:3,1:1; files as torchrun's: DIR/<id>_<run>/attempt_<n>/<local rank>/stdout.log", {}, {}, kOptionRowsHidden, "PET_REDIRECTS", kTorchrun, kSame},
  {"--tee -t", "N|MAP", "Streams that go to such files too", {}, {}, kOptionRowsHidden, "PET_TEE", kTorchrun, kSame},
  {"--local_ranks_filter", "LIST", "Show the output of these local ranks only (0,2); the files have all", {}, {}, kOutput, "PET_LOCAL_RANKS_FILTER", kTorchrun, kSame},
  {"--log_line_prefix_template", "TEXT", "What stands before each line: ${rank}, ${local_rank}, ${role_name}. Default: \"[rank ${rank}] \"", {}, {}, kOutput, "PET_LOG_LINE_PREFIX_TEMPLATE TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", kTorchrun, kBetter},
  {"--json", "FILE", "Write how the job ended to FILE, for programs", {}, {}, kOutput, "", kArgosy, kSame},
  {"--dry_run", "", "Print what would be started, and start nothing", {}, {}, kOutput, "", kArgosy, kSame},
  {"--verbose", "", "Print at the start how the CPUs are set up, and the whole environment of the ranks", {}, {}, kOutput, "", kArgosy, kSame},
  {"--log_overwrite", "BOOL", "Empty Paddle's workerlog.<i> first; they are appended to otherwise. Our own runs have a folder each", {}, {}, kOptionRowsHidden, "PADDLE_LOG_OVERWRITE", kPaddle, kSame},
  {"--log_level", "LEVEL", "ARGOSY_LOG says how much of our log is written", {}, {}, kOptionRowsHidden, "PADDLE_LOG_LEVEL", kPaddle, kNoEffect},
  {"--enable_gpu_log", "BOOL", "GPUs are not sampled", {}, {}, kOptionRowsHidden, "", kPaddle, kNoEffect},
  {"--event_log_handler", "NAME", "torchrun's own events do not exist here", {}, {}, kOptionRowsHidden, "PET_EVENT_LOG_HANDLER", kTorchrun, kNoEffect},
  {"--logs_specs", "NAME", "a class inside torchrun; see --log_dir", {}, {}, kOptionRowsHidden, "PET_LOGS_SPECS", kTorchrun, kRefused},
  {"--duplicate_stdout_filters", "LIST", "Lines with one of these texts (a,b; ,, is a comma) go to filtered_stdout.log beside the rank logs too; --tee is not needed", {}, {}, kOptionRowsHidden, "PET_DUPLICATE_STDOUT_FILTERS", kTorchrun, kBetter},
  {"--duplicate_stderr_filters", "LIST", "The same of standard error: filtered_stderr.log", {}, {}, kOptionRowsHidden, "PET_DUPLICATE_STDERR_FILTERS", kTorchrun, kBetter},
  {"--print_completion", "", "shell completion of torchrun", {}, {}, kOptionRowsHidden, "", kTorchrun, kRefused},

  {"--max_restarts --max_restart", "N", "Start all ranks again when one fails, N times at most; each finds how often in TORCHELASTIC_RESTART_COUNT. Default: 0 (Paddle's is 3, with etcd only)", {}, {}, kFailures, "PET_MAX_RESTARTS PADDLE_MAX_RESTART", kBoth, kSame},
  {"--restart_usage_errors", "", "Restart after exit codes 2, 126 and 127 too, which usually come again", {}, {}, kFailures, "", kArgosy, kSame},
  {"--shutdown_timeout", "SECONDS", "Seconds that ranks have to stop before they are killed. Default: 5 (torchrun's 30 are what Slurm and Kubernetes leave it, so it never reports)", {}, {}, kFailures, "PET_SHUTDOWN_TIMEOUT TORCH_ELASTIC_SHUTDOWN_TIMEOUT", kTorchrun, kBetter},
  {"--heartbeat_timeout", "SECONDS", "A rank that begins and ends no operation for so long, and waits in none, hangs: it is ended by SIGABRT, which shows where it stands. For programs that use the library. Default: 0 (never)", {}, {}, kFailures, "", kArgosy, kSame},
  {"--monitor_interval", "SECONDS", "the kernel tells at once when a rank ends; nothing is polled", {}, {}, kOptionRowsHidden, "PET_MONITOR_INTERVAL", kTorchrun, kNoEffect},
  {"--start_method", "METHOD", "ranks are programs of their own, never forks of the launcher", {}, {}, kOptionRowsHidden, "PET_START_METHOD", kTorchrun, kNoEffect},
  {"--run_path", "", "each rank runs the script in an interpreter of its own", {}, {}, kOptionRowsHidden, "PET_RUN_PATH", kTorchrun, kNoEffect},
  {"--signals_to_handle", "LIST", "SIGTERM, SIGINT, SIGHUP and SIGQUIT stop the job; the others pass", {}, {}, kOptionRowsHidden, "PET_SIGNALS_TO_HANDLE", kTorchrun, kNoEffect},
  {"--virtual_local_rank", "", "LOCAL_RANK 0 for all, one GPU visible to each", {}, {}, kOptionRowsHidden, "PET_VIRTUAL_LOCAL_RANK", kTorchrun, kSame},
  {"--elastic_level", "N", "--max_restarts says whether to restart", {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_LEVEL", kPaddle, kNoEffect},
  {"--timeout --elastic_timeout", "SECONDS", "How long nodes wait for each other. Default: 300", {}, {}, kNodes, "PADDLE_ELASTIC_TIMEOUT", kArgosy, kSame},
  {"--use_env", "", "of torch.distributed.launch: ranks always find LOCAL_RANK in the environment; without it torch-launch also gives the program --local_rank=N, spelt as before PyTorch 2.0", {}, {}, kOptionRowsHidden, "", kTorchrun, kNoEffect},
  {"--legacy", "BOOL", "false; true is refused, for there is no former launcher to fall back to", {}, {}, kOptionRowsHidden, "", kPaddle, kSame},

  {"--servers", "LIST", kNoServers, {}, {}, kOptionRowsHidden, "PADDLE_SERVERS_ENDPOINTS", kPaddle, kRefused},
  {"--trainers --workers", "LIST", kNoServers, {}, {}, kOptionRowsHidden, "PADDLE_TRAINERS_ENDPOINTS", kPaddle, kRefused},
  {"--server_num", "N", kNoServers, {}, {}, kOptionRowsHidden, "PADDLE_SERVER_NUM", kPaddle, kRefused},
  {"--trainer_num --worker_num", "N", kNoServers, {}, {}, kOptionRowsHidden, "PADDLE_TRAINER_NUM", kPaddle, kRefused},
  {"--heter_workers", "LIST", kNoServers, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--heter_worker_num", "N", kNoServers, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--heter_devices", "LIST", kNoServers, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--gloo_port --http_port", "PORT", kNoServers, {}, {}, kOptionRowsHidden, "PADDLE_GLOO_PORT", kPaddle, kRefused},
  {"--with_gloo", "N", kNoServers, {}, {}, kOptionRowsHidden, "PADDLE_WITH_GLOO", kPaddle, kRefused},
  {"--elastic_server", "HOST:PORT", kOldElastic, {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_SERVER", kPaddle, kRefused},
  {"--np", "N", kOldElastic, {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_NP", kPaddle, kRefused},
  {"--scale", "N", kOldElastic, {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_SCALE", kPaddle, kRefused},
  {"--force", "BOOL", kOldElastic, {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_FORCE", kPaddle, kRefused},
  {"--elastic_pre_hook", "COMMAND", kOldElastic, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--auto_tuner_json", "FILE", "the auto-tuner is part of Paddle's hybrid parallelism", {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--auto_parallel_config", "FILE", "auto-parallel is part of Paddle", {}, {}, kOptionRowsHidden, "PADDLE_AUTO_PARALLEL_CONFIG", kPaddle, kRefused},
  {"--auto_cluster_config", "BOOL", "auto-parallel is part of Paddle", {}, {}, kOptionRowsHidden, "PADDLE_AUTO_CLUSTER", kPaddle, kRefused},
  {"--npus --xpus", "LIST", "only NVIDIA GPUs and CPUs are known; see --gpus", {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
});
// clang-format on

}  // namespace

std::span<const program::Option> option_rows() {
  return kRows;
}

}  // namespace argosy::launch
