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

constexpr std::string_view kHeterogeneous = "heterogeneous parameter servers are part of Paddle";
constexpr std::string_view kCoordinators = "coordinators of federated learning are part of Paddle";
constexpr std::string_view kPaddlesGloo =
    "processes meet in the launcher's store, which Paddle's servers of Gloo are for";
constexpr std::string_view kOldElastic =
    "it belongs to Paddle's former launcher; elastic sizes do not exist yet";

// clang-format off
constexpr auto kRows = std::to_array<program::Option>({
  {"--nproc_per_node -n", "N|auto|cpu|gpu", "Ranks on this node: a number, cpu (one per core), gpu (one per GPU) or auto (gpu if there are GPUs, else cpu). Default: one per GPU of --gpus, else 1", {}, {}, kRanks, "PET_NPROC_PER_NODE PADDLE_NPROC_PER_NODE", kBoth, kSame},
  {"--gpus --devices --selected_gpus", "LIST", "Numbers of the GPUs to use (0,2). Every rank gets the list as CUDA_VISIBLE_DEVICES (of AMD's also as HIP_VISIBLE_DEVICES) and uses the GPU of its LOCAL_RANK. Default of --nproc_per_node: one rank per GPU. If no GPU is visible, the launcher warns and does the same", {}, {}, kRanks, "PADDLE_DEVICES", kPaddle, kBetter},
  {"--run_mode", "MODE", "collective or rpc, which need nothing different here, or ps: see --server_num. ps-heter is refused", {}, {}, kRanks, "PADDLE_RUN_MODE", kPaddle, kSame},
  {"--server_num", "N", "Processes that serve tables (a parameter server): the first of this node, whose TRAINING_ROLE is PSERVER. A server that dies is said, and ends nothing while another one lives. Default: none, or 1 with --run_mode ps or --worker_num", {}, {}, kRanks, "PADDLE_SERVER_NUM", kPaddle, kSame},
  {"--worker_num --trainer_num", "N", "Processes that train beside them, whose TRAINING_ROLE is TRAINER. Default: 1 with servers", {}, {}, kRanks, "PADDLE_TRAINER_NUM", kPaddle, kSame},
  {"--servers", "LIST", "HOST:PORT of all servers, on all nodes, in place of --nnodes and --server_num: each node starts those with its address, and they meet as with --ips. Ports are not used, for free ones are held", {}, {}, kOptionRowsHidden, "PADDLE_SERVERS_ENDPOINTS", kPaddle, kSame},
  {"--workers --trainers", "LIST", "HOST:PORT of all workers, beside --servers", {}, {}, kOptionRowsHidden, "PADDLE_TRAINERS_ENDPOINTS", kPaddle, kSame},
  {"--module -m", "", "Start the program as a Python module: python -u -m PROGRAM", {}, {}, kRanks, "PET_MODULE", kTorchrun, kSame},
  {"--no_python", "", "Execute the program itself, even if its name ends in .py", {}, {}, kRanks, "PET_NO_PYTHON", kTorchrun, kSame},
  {"--env", "NAME=VALUE", "Set a variable for all ranks. May be repeated", {}, {}, kRanks, "", kArgosy, kSame},
  {"--cpu_bind --bind --numa_binding", "none|cores|numa|socket", "Bind each rank to its own cores, or to the cores of one NUMA node or socket: those next to its GPU, where it has one. torchrun's words exclusive and node work too, core-complex does not. Default: none", {}, {}, kRanks, "PET_NUMA_BINDING", kTorchrun, kBetter},
  {"--cpu_capability", "default|avx2|avx512", "The instruction set for the kernels of libtorch, oneDNN and OpenBLAS, so that unlike machines compute the same bits: ATEN_CPU_CAPABILITY, DNNL_MAX_CPU_ISA, OPENBLAS_CORETYPE. A machine without it refuses. Default: what each machine has", {}, {}, kRanks, "", kArgosy, kSame},
  {"--role", "NAME", "ROLE_NAME of the ranks. Default: default", {}, {}, kRanks, "PET_ROLE", kTorchrun, kSame},

  {"--nnodes", "N", "Number of nodes. Each node runs this command, with a number of ranks of its own. Default: 1. A range (2:4) does not work yet", {}, {}, kNodes, "PET_NNODES PADDLE_NNODES", kBoth, kBetter},
  {"--node_rank --rank", "N", "Number of this node, from 0; the nodes meet at node 0. Default: the position in --ips, else the order of arrival", {}, {}, kNodes, "PET_NODE_RANK PADDLE_RANK JOB_COMPLETION_INDEX", kBoth, kSame},
  {"--master_addr", "HOST", "An address of node 0. The nodes meet there, at --master_port (default 29500)", {}, {}, kNodes, "PET_MASTER_ADDR", kTorchrun, kSame},
  {"--master_port", "PORT", "With several nodes: the port where the nodes meet. With one node: MASTER_PORT, the port of rank 0's own store. Default for one node: a free port, held from the start", {}, {}, kNodes, "PET_MASTER_PORT", kTorchrun, kBetter},
  {"--master", "HOST:PORT", "Where the nodes meet. The meeting has a time limit", {}, {}, kNodes, "PADDLE_MASTER", kPaddle, kBetter},
  {"--ips --cluster_node_ips", "LIST", "Addresses of all nodes in the order of their numbers. Give the same list on each node", {}, {}, kNodes, "PADDLE_IPS", kPaddle, kBetter},
  {"--host --node_ip --local_addr", "ADDRESS", "Address of this node. Default: its address in --ips, else the address that leads to node 0", {}, {}, kNodes, "POD_IP PET_LOCAL_ADDR", kBoth, kSame},
  {"--ifname", "NAME", "Network interface (eth0) whose address is this node's. The ranks use it too", {}, {}, kNodes, "ARGOSY_IFNAME", kArgosy, kSame},
  {"--listen", "ADDRESS", "Address on which node 0 listens. 0.0.0.0 means all interfaces. Default: only the address where the nodes meet", {}, {}, kOptionRowsHidden, "", kArgosy, kSame},
  {"--hostfile", "FILE", "File of the nodes, one per line: HOST, HOST slots=N or HOST:N (N ranks). Replaces --ips; required for --ssh", {}, {}, kNodes, "", kArgosy, kSame},
  {"--ssh", "", "Start the launchers on the hosts of --hostfile from here, by ssh or $ARGOSY_SSH_COMMAND", {}, {}, kNodes, "", kArgosy, kSame},
  {"--leash", "", "Stop when standard input says so or ends. --ssh sets it", {}, {}, kOptionRowsHidden, "", kArgosy, kSame},
  {"--start_port --started_port", "PORT", "With --ips: the nodes meet at the port before this one. Default: 6070. The ranks' endpoints use other ports, held from the start", {}, {}, kOptionRowsHidden, "PADDLE_START_PORT FLAGS_START_PORT", kPaddle, kBetter},
  {"--rdzv_endpoint", "HOST[:PORT]", "Where the nodes meet; the node with this address hosts the meeting. Default port: 29400", {}, {}, kNodes, "PET_RDZV_ENDPOINT", kTorchrun, kSame},
  {"--rdzv_id --job_id", "ID", "Name of the job (TORCHELASTIC_RUN_ID)", {}, {}, kNodes, "PET_RDZV_ID PADDLE_JOB_ID", kBoth, kSame},
  {"--rdzv_backend", "NAME", "static or c10d. Both meet in the launcher of node 0. etcd and others are refused", {}, {}, kOptionRowsHidden, "PET_RDZV_BACKEND", kTorchrun, kSame},
  {"--rdzv_conf", "LIST", "The settings join_timeout (same as --timeout), keep_alive_interval and keep_alive_max_attempt count. The other settings belong to torchrun's store and are ignored", {}, {}, kOptionRowsHidden, "PET_RDZV_CONF", kTorchrun, kBetter},
  {"--keep_alive_interval", "SECONDS", "How often each launcher tells node 0 that it is alive. Default: 0.5", {}, {}, kNodes, "", kArgosy, kSame},
  {"--keep_alive_max_attempt", "N", "Number of silent intervals after which a node is lost. Default: 5. torchrun waits 3 intervals of 5 s", {}, {}, kNodes, "", kArgosy, kSame},
  {"--tls", "", "Encrypt what launchers and ranks tell each other, except the data of collectives. The certificates are derived from ARGOSY_TOKEN, which all nodes must have", {}, {}, kNodes, "ARGOSY_TLS", kArgosy, kSame},
  {"--tls_cert", "FILE", "This node's certificate (PEM), for --tls with certificates of your own", {}, {}, kOptionRowsHidden, "ARGOSY_TLS_CERT", kArgosy, kSame},
  {"--tls_key", "FILE", "The key of that certificate (PEM, no passphrase)", {}, {}, kOptionRowsHidden, "ARGOSY_TLS_KEY", kArgosy, kSame},
  {"--tls_ca", "FILE", "The authority that signed the certificates of all nodes (PEM)", {}, {}, kOptionRowsHidden, "ARGOSY_TLS_CA", kArgosy, kSame},
  {"--tls_name", "NAME", "The name in node 0's certificate. Default: the host name of the meeting place", {}, {}, kOptionRowsHidden, "ARGOSY_TLS_NAME", kArgosy, kSame},
  {"--standalone", "", "Run on one node, whatever the environment says", {}, {}, kOptionRowsHidden, "PET_STANDALONE", kTorchrun, kSame},
  {"--sort_ip", "BOOL", "false. true is refused: nodes are numbered by --node_rank, by their order in --ips, or by their order of arrival", {}, {}, kOptionRowsHidden, "PADDLE_SORT_IP", kPaddle, kBetter},
  {"--use_paddlecloud", "", "The platform's variables are read without it", {}, {}, kOptionRowsHidden, "", kPaddle, kNoEffect},

  {"--log_dir", "DIR", "Also write the output of each rank to DIR/<run>/rank<k>.log. \"\" writes no files. Default: runs", {}, {}, kOutput, "PET_LOG_DIR PADDLE_LOG_DIR", kBoth, kBetter},
  {"--redirects -r", "N|MAP", "Write streams to files only: 1 is standard output, 2 standard error, 3 both; or one number per local rank (0:3,1:1). The files are torchrun's: DIR/<id>_<run>/attempt_<n>/<local rank>/stdout.log", {}, {}, kOptionRowsHidden, "PET_REDIRECTS", kTorchrun, kSame},
  {"--tee -t", "N|MAP", "Write streams to the files of --redirects and show them too", {}, {}, kOptionRowsHidden, "PET_TEE", kTorchrun, kSame},
  {"--local_ranks_filter", "LIST", "Show the output of these local ranks only (0,2). The files keep the output of all", {}, {}, kOutput, "PET_LOCAL_RANKS_FILTER", kTorchrun, kSame},
  {"--log_line_prefix_template", "TEXT", "Text before each line of output. It may contain ${rank}, ${local_rank} and ${role_name}. Default: \"[rank ${rank}] \"", {}, {}, kOutput, "PET_LOG_LINE_PREFIX_TEMPLATE TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", kTorchrun, kBetter},
  {"--json", "FILE", "Write to FILE, for programs, how the job ended", {}, {}, kOutput, "", kArgosy, kSame},
  {"--dry_run", "", "Print what would start, and start nothing", {}, {}, kOutput, "", kArgosy, kSame},
  {"--verbose", "", "First print how the CPUs are set up and the whole environment of the ranks", {}, {}, kOutput, "", kArgosy, kSame},
  {"--log_overwrite", "BOOL", "Empty Paddle's workerlog.<i> files first. The default appends to them. Each run has a folder of its own in any case", {}, {}, kOptionRowsHidden, "PADDLE_LOG_OVERWRITE", kPaddle, kSame},
  {"--log_level", "LEVEL", "ARGOSY_LOG sets the level of our log", {}, {}, kOptionRowsHidden, "PADDLE_LOG_LEVEL", kPaddle, kNoEffect},
  {"--enable_gpu_log", "BOOL", "GPUs are not sampled", {}, {}, kOptionRowsHidden, "", kPaddle, kNoEffect},
  {"--event_log_handler", "NAME", "torchrun's own events do not exist here", {}, {}, kOptionRowsHidden, "PET_EVENT_LOG_HANDLER", kTorchrun, kNoEffect},
  {"--logs_specs", "NAME", "it names a class inside torchrun; use --log_dir", {}, {}, kOptionRowsHidden, "PET_LOGS_SPECS", kTorchrun, kRefused},
  {"--duplicate_stdout_filters", "LIST", "Also write lines of standard output that contain one of these texts (a,b; write a comma as ,,) to filtered_stdout.log beside the rank logs. Works without --tee", {}, {}, kOptionRowsHidden, "PET_DUPLICATE_STDOUT_FILTERS", kTorchrun, kBetter},
  {"--duplicate_stderr_filters", "LIST", "The same for standard error, in filtered_stderr.log", {}, {}, kOptionRowsHidden, "PET_DUPLICATE_STDERR_FILTERS", kTorchrun, kBetter},
  {"--print_completion", "", "it prints torchrun's own shell completion", {}, {}, kOptionRowsHidden, "", kTorchrun, kRefused},

  {"--max_restarts --max_restart", "N", "Start all ranks again when one fails, at most N times. A killed server is started again alone, at most N times each, while another server lives. TORCHELASTIC_RESTART_COUNT tells each rank the number of restarts. Default: 0. Paddle's default is 3, with etcd only", {}, {}, kFailures, "PET_MAX_RESTARTS PADDLE_MAX_RESTART", kBoth, kSame},
  {"--restart_usage_errors", "", "Also restart after exit codes 2, 126 and 127. Without it they end the job, because such errors usually return", {}, {}, kFailures, "", kArgosy, kSame},
  {"--shutdown_timeout", "SECONDS", "Seconds between the request to stop and SIGKILL. Default: 5. torchrun waits 30, as long as Slurm and Kubernetes wait for torchrun itself, so it cannot report", {}, {}, kFailures, "PET_SHUTDOWN_TIMEOUT TORCH_ELASTIC_SHUTDOWN_TIMEOUT", kTorchrun, kBetter},
  {"--heartbeat_timeout", "SECONDS", "A rank hangs if it begins and ends no operation for so long and waits in none. Such a rank is ended by SIGABRT, and its stack is shown. Works for programs that use the library. Default: 0 (never)", {}, {}, kFailures, "", kArgosy, kSame},
  {"--monitor_interval", "SECONDS", "The kernel reports the end of a rank at once; nothing is polled", {}, {}, kOptionRowsHidden, "PET_MONITOR_INTERVAL", kTorchrun, kNoEffect},
  {"--start_method", "METHOD", "Ranks are programs of their own, never forks of the launcher", {}, {}, kOptionRowsHidden, "PET_START_METHOD", kTorchrun, kNoEffect},
  {"--run_path", "", "Each rank runs the script in an interpreter of its own", {}, {}, kOptionRowsHidden, "PET_RUN_PATH", kTorchrun, kNoEffect},
  {"--signals_to_handle", "LIST", "SIGTERM, SIGINT, SIGHUP and SIGQUIT stop the job. SIGUSR1 and SIGUSR2 go to the ranks", {}, {}, kOptionRowsHidden, "PET_SIGNALS_TO_HANDLE", kTorchrun, kNoEffect},
  {"--virtual_local_rank", "", "Every rank has LOCAL_RANK 0 and sees only its own GPU", {}, {}, kOptionRowsHidden, "PET_VIRTUAL_LOCAL_RANK", kTorchrun, kSame},
  {"--elastic_level", "N", "--max_restarts decides about restarts", {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_LEVEL", kPaddle, kNoEffect},
  {"--timeout --elastic_timeout", "SECONDS", "Seconds that nodes wait for each other. Default: 300", {}, {}, kNodes, "PADDLE_ELASTIC_TIMEOUT", kArgosy, kSame},
  {"--use_env", "", "An option of torch.distributed.launch. Ranks always find LOCAL_RANK in the environment. Without it, argosy torch-launch also gives the program --local_rank=N, spelt as before PyTorch 2.0", {}, {}, kOptionRowsHidden, "", kTorchrun, kNoEffect},
  {"--legacy", "BOOL", "false. true is refused, because there is no former launcher to fall back to", {}, {}, kOptionRowsHidden, "", kPaddle, kSame},

  {"--heter_workers", "LIST", kHeterogeneous, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--heter_worker_num", "N", kHeterogeneous, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--heter_devices", "LIST", kHeterogeneous, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--coordinators", "LIST", kCoordinators, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--coordinator_num", "N", kCoordinators, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--gloo_port --http_port", "PORT", kPaddlesGloo, {}, {}, kOptionRowsHidden, "PADDLE_GLOO_PORT", kPaddle, kRefused},
  {"--with_gloo", "N", kPaddlesGloo, {}, {}, kOptionRowsHidden, "PADDLE_WITH_GLOO", kPaddle, kRefused},
  {"--elastic_server", "HOST:PORT", kOldElastic, {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_SERVER", kPaddle, kRefused},
  {"--np", "N", kOldElastic, {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_NP", kPaddle, kRefused},
  {"--scale", "N", kOldElastic, {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_SCALE", kPaddle, kRefused},
  {"--force", "BOOL", kOldElastic, {}, {}, kOptionRowsHidden, "PADDLE_ELASTIC_FORCE", kPaddle, kRefused},
  {"--elastic_pre_hook", "COMMAND", kOldElastic, {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--auto_tuner_json", "FILE", "the auto-tuner is part of Paddle's hybrid parallelism", {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
  {"--auto_parallel_config", "FILE", "auto-parallel is part of Paddle", {}, {}, kOptionRowsHidden, "PADDLE_AUTO_PARALLEL_CONFIG", kPaddle, kRefused},
  {"--auto_cluster_config", "BOOL", "auto-parallel is part of Paddle", {}, {}, kOptionRowsHidden, "PADDLE_AUTO_CLUSTER", kPaddle, kRefused},
  {"--npus --xpus", "LIST", "Argosy knows only NVIDIA's and AMD's GPUs and CPUs; use --gpus", {}, {}, kOptionRowsHidden, "", kPaddle, kRefused},
});
// clang-format on

}  // namespace

std::span<const program::Option> option_rows() {
  return kRows;
}

}  // namespace argosy::launch
