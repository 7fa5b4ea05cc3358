#include "argosy/launch/environment.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using Map = std::map<std::string, std::string>;

JobDescription job_of_two() {
  return {.ranks = 2,
          .world_size = 2,

          .run_id = "run-1",
          .master_port = 4000,
          .endpoints = {"127.0.0.1:4001", "127.0.0.1:4002"},
          .store = "127.0.0.1:4003",
          .token = "secret",
          .node = {.cores = 5, .gpus = 0, .avx512 = true}};
}

Map environment(const JobDescription& job, int rank, const std::vector<std::string>& base = {}) {
  Map map;
  for (const std::string& entry : rank_environment(job, rank, base)) {
    const size_t equals = entry.find('=');
    EXPECT_TRUE(map.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second) << entry;
  }
  return map;
}

TEST(RankEnvironment, ARestartHasANameOfItsOwn) {
  JobDescription job = job_of_two();
  job.restart = 2;
  job.max_restarts = 3;
  const Map map = environment(job, 0);
  EXPECT_EQ(map.at("ARGOSY_RUN_ID"), "run-1.restart2");  // nothing of its former life in the store
  EXPECT_EQ(map.at("TORCHELASTIC_RUN_ID"), "run-1");
  EXPECT_EQ(map.at("ARGOSY_RESTART_COUNT"), "2");
  EXPECT_EQ(map.at("TORCHELASTIC_RESTART_COUNT"), "2");
  EXPECT_EQ(map.at("TORCHELASTIC_MAX_RESTARTS"), "3");
}

TEST(RankEnvironment, LinePrefixesAreFilledIn) {
  JobDescription job = job_of_two();
  job.role = "trainer";
  EXPECT_EQ(line_prefix("[rank ${rank}] ", job, 1), "[rank 1] ");
  EXPECT_EQ(line_prefix("${role_name}${local_rank}${rank}${what}", job, 0), "trainer00${what}");
  job.prefix_has_rank = false;
  EXPECT_EQ(environment(job, 1, {"ARGOSY_LINE_PREFIX=rank 7"}).count("ARGOSY_LINE_PREFIX"), 0U);
}

TEST(RankEnvironment, AVirtualLocalRankSeesOneGpuOnly) {
  JobDescription job = job_of_two();
  job.virtual_local_rank = true;
  job.node.gpus = 2;
  const Map first = environment(job, 1);
  EXPECT_EQ(first.at("CUDA_VISIBLE_DEVICES"), "1");
  for (const char* name :
       {"LOCAL_RANK", "PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE", "FLAGS_selected_gpus"}) {
    EXPECT_EQ(first.at(name), "0");
  }
  EXPECT_EQ(first.at("LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(environment(job, 1, {"CUDA_VISIBLE_DEVICES=4, GPU-5a"}).at("CUDA_VISIBLE_DEVICES"),
            "GPU-5a");
  EXPECT_EQ(environment(job, 1, {"CUDA_VISIBLE_DEVICES="}).at("CUDA_VISIBLE_DEVICES"), "");
  job.local_offset = 3;  // the fourth task of a node that its queue has given one GPU
  job.local_size = 4;
  EXPECT_EQ(environment(job, 0, {"CUDA_VISIBLE_DEVICES=7"}).at("CUDA_VISIBLE_DEVICES"), "7");
  // One whose queue has given it none, or all of the node's.
  EXPECT_EQ(environment(job, 0).at("CUDA_VISIBLE_DEVICES"), "3");
  EXPECT_EQ(environment(job, 0, {"CUDA_VISIBLE_DEVICES=4,5,6,7"}).at("CUDA_VISIBLE_DEVICES"), "7");
  job.gpus = {0, 2, 4, 6};
  EXPECT_EQ(environment(job, 0).at("CUDA_VISIBLE_DEVICES"), "6");
  job.local_offset = 0;
  job.local_size = 0;
  job.gpus = {2, 5};
  EXPECT_EQ(environment(job, 1).at("CUDA_VISIBLE_DEVICES"), "5");
}

TEST(RankEnvironment, WhatTheUserAskedForWins) {
  JobDescription job = job_of_two();
  job.gpus = {2, 5};
  job.node.gpus = 2;
  job.job_id = "night";
  job.role = "trainer";
  job.extra = {{"OMP_NUM_THREADS", "7"}, {"MODE", "fast"}};
  const Map map = environment(job, 1, {"CUDA_VISIBLE_DEVICES=2,3,5", "OMP_NUM_THREADS=1"});
  EXPECT_EQ(map.at("CUDA_VISIBLE_DEVICES"), "2,5");  // all of them for each rank: it takes its own
  EXPECT_EQ(map.at("FLAGS_selected_gpus"), "1");
  EXPECT_EQ(map.at("TORCHELASTIC_RUN_ID"), "night");
  EXPECT_EQ(map.at("ROLE_NAME"), "trainer");
  EXPECT_EQ(map.at("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(map.at("MODE"), "fast");
}

TEST(RankEnvironment, HasTorchrunsPaddlesAndOurs) {
  const Map expected{{"ARGOSY_LINE_PREFIX", "rank 1"},
                     {"ARGOSY_OMP_NUM_THREADS", "2"},
                     {"ARGOSY_PROGRESS", "plain"},
                     {"ARGOSY_RESTART_COUNT", "0"},
                     {"ARGOSY_RUN_ID", "run-1"},
                     {"ARGOSY_STORE", "127.0.0.1:4003"},
                     {"ARGOSY_TOKEN", "secret"},
                     {"GROUP_RANK", "0"},
                     {"GROUP_WORLD_SIZE", "1"},
                     {"HOME", "/h/a=b"},
                     {"LOCAL_RANK", "1"},
                     {"LOCAL_WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", "4000"},
                     {"OMP_NUM_THREADS", "2"},
                     {"OMP_WAIT_POLICY", "passive"},
                     {"OPENBLAS_CORETYPE", "SKYLAKEX"},
                     {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:4002"},
                     {"PADDLE_DISTRI_BACKEND", "gloo"},
                     {"PADDLE_GLOBAL_RANK", "1"},
                     {"PADDLE_GLOBAL_SIZE", "2"},
                     {"PADDLE_LOCAL_RANK", "1"},
                     {"PADDLE_LOCAL_SIZE", "2"},
                     {"PADDLE_MASTER", "127.0.0.1:4000"},
                     {"PADDLE_MASTER_ENDPOINT", "127.0.0.1:4000"},
                     {"PADDLE_NNODES", "1"},
                     {"PADDLE_RANK_IN_NODE", "1"},
                     {"PADDLE_TRAINERS_NUM", "2"},
                     {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:4001,127.0.0.1:4002"},
                     {"PADDLE_TRAINER_ID", "1"},
                     {"PADDLE_WORKER_ENDPOINT", "127.0.0.1:4002"},
                     {"POD_NAME", "run-1-0"},
                     {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                     {"RANK", "1"},
                     {"ROLE_NAME", "default"},
                     {"ROLE_RANK", "1"},
                     {"ROLE_WORLD_SIZE", "2"},
                     {"TORCHELASTIC_MAX_RESTARTS", "0"},
                     {"TORCHELASTIC_RESTART_COUNT", "0"},
                     {"TORCHELASTIC_RUN_ID", "run-1"},
                     {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                     {"WORLD_SIZE", "2"}};
  EXPECT_EQ(environment(job_of_two(), 1, {"HOME=/h/a=b"}), expected);
}

TEST(RankEnvironment, ServersAndWorkersHaveTheVariablesOfPaddles) {
  JobDescription job = job_of_two();
  job.ranks = 3;
  job.world_size = 3;
  job.servers = 1;
  job.endpoints.emplace_back("127.0.0.1:4005");
  const Map server = environment(job, 0, {"PADDLE_TRAINER_ID=7"});
  const Map worker = environment(job, 2);
  for (const Map& map : {server, worker}) {
    EXPECT_EQ(map.at("PADDLE_PSERVERS_IP_PORT_LIST"), "127.0.0.1:4001");
    EXPECT_EQ(map.at("PADDLE_TRAINER_ENDPOINTS"), "127.0.0.1:4002,127.0.0.1:4005");
    EXPECT_EQ(map.at("PADDLE_TRAINERS_NUM"), "2");
    EXPECT_EQ(map.at("POD_IP"), "127.0.0.1");
  }
  EXPECT_EQ(server.at("TRAINING_ROLE"), "PSERVER");
  EXPECT_EQ(server.at("PADDLE_PORT"), "4001");
  EXPECT_EQ(server.count("PADDLE_TRAINER_ID"), 0U);
  EXPECT_EQ(server.at("RANK") + server.at("WORLD_SIZE"), "01");
  EXPECT_EQ(server.at("ARGOSY_LINE_PREFIX"), "server 0");
  EXPECT_EQ(worker.at("TRAINING_ROLE"), "TRAINER");
  EXPECT_EQ(worker.at("PADDLE_TRAINER_ID"), "1");
  EXPECT_EQ(worker.at("RANK") + worker.at("WORLD_SIZE"), "12");
  EXPECT_EQ(worker.at("LOCAL_RANK") + worker.at("LOCAL_WORLD_SIZE"), "12");
  EXPECT_EQ(line_prefix("[${role_name} ${rank}] ", job, 2), "[worker 1] ");
}

TEST(RankEnvironment, RolesAreCountedOverTheNodes) {
  JobDescription job = job_of_two();  // node 1: a server and two workers
  job.nodes = 3;
  job.node_rank = 1;
  job.first_rank = 2;
  job.ranks = 3;
  job.world_size = 6;
  job.servers = 1;
  job.ranks_of_nodes = {2, 3, 1};
  job.servers_of_nodes = {1, 1, 0};
  job.endpoints = {"a:1", "a:2", "b:1", "b:2", "b:3", "c:1"};
  const Map server = environment(job, 0);
  EXPECT_EQ(server.at("PADDLE_PSERVERS_IP_PORT_LIST"), "a:1,b:1");
  EXPECT_EQ(server.at("PADDLE_TRAINER_ENDPOINTS"), "a:2,b:2,b:3,c:1");
  EXPECT_EQ(server.at("PADDLE_TRAINERS_NUM"), "4");
  EXPECT_EQ(server.at("POD_IP") + ":" + server.at("PADDLE_PORT"), "b:1");
  EXPECT_EQ(line_prefix("${role_name} ${rank}", job, 0), "server 1");
  EXPECT_EQ(line_prefix("${role_name} ${rank}", job, 2), "worker 2");
  const RoleOfRank worker = role_of(job, 2);
  EXPECT_EQ(worker.count, 4);
  EXPECT_EQ(worker.local_index, 1);
  EXPECT_EQ(worker.local_count, 2);
  EXPECT_EQ(environment(job, 2).at("PADDLE_TRAINER_ID"), "2");
  EXPECT_EQ(environment(job, 2).at("RANK") + environment(job, 2).at("WORLD_SIZE"), "24");
  EXPECT_EQ(environment(job, 2).at("ARGOSY_RANK"), "4");

  job.node_rank = 2;  // a worker alone
  job.first_rank = 5;
  job.ranks = 1;
  job.servers = 0;
  EXPECT_EQ(line_prefix("${role_name} ${rank}", job, 0), "worker 3");
  EXPECT_EQ(environment(job, 0).at("TRAINING_ROLE"), "TRAINER");
}

TEST(RankEnvironment, PlaceReplacesTuningGivesWay) {
  const Map map = environment(job_of_two(),
                              0,
                              {"RANK=7",
                               "PADDLE_TRAINER_ID=7",
                               "ARGOSY_LOG_DIR=/old",
                               "PADDLE_LOG_DIR=/old",
                               "FLAGS_selected_gpus=3",
                               "OMP_NUM_THREADS=9",
                               "OPENBLAS_CORETYPE=ZEN",
                               "ARGOSY_PROGRESS=off"});
  EXPECT_EQ(map.at("RANK"), "0");
  EXPECT_EQ(map.at("PADDLE_TRAINER_ID"), "0");
  EXPECT_EQ(map.count("ARGOSY_LOG_DIR"), 0U);  // an outer launcher's folder
  EXPECT_EQ(map.count("PADDLE_LOG_DIR"), 0U);
  EXPECT_EQ(map.count("FLAGS_selected_gpus"), 0U);
  EXPECT_EQ(map.at("OMP_NUM_THREADS"), "9");
  EXPECT_EQ(map.count("ARGOSY_OMP_NUM_THREADS"), 0U) << "the user's choice";
  EXPECT_EQ(map.count("OMP_WAIT_POLICY"), 0U);  // who chooses the number chooses this too
  EXPECT_EQ(map.at("OPENBLAS_CORETYPE"), "ZEN");
  EXPECT_EQ(map.at("ARGOSY_PROGRESS"), "off");
}

TEST(RankEnvironment, MoreRanksThanCoresStillHaveAThread) {
  JobDescription job = job_of_two();
  job.node.cores = 1;
  EXPECT_EQ(environment(job, 0).at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(environment(job, 0).count("OMP_WAIT_POLICY"), 0U);  // nobody to wait for
}

TEST(RankEnvironment, RanksHaveNoMoreThreadsThanCoresToWhichTheyAreBound) {
  JobDescription job = job_of_two();
  job.node.cores = 64;
  EXPECT_EQ(environment(job, 0).at("OMP_NUM_THREADS"), "32");
  job.bound_cores = 16;
  EXPECT_EQ(environment(job, 0).at("OMP_NUM_THREADS"), "16");
  job.bound_cores = 64;  // all of a machine of which the cgroup gives half the time
  EXPECT_EQ(environment(job, 0).at("OMP_NUM_THREADS"), "32");
}

TEST(RankEnvironment, HowThreadsWaitIsTheUsersChoice) {
  EXPECT_EQ(environment(job_of_two(), 0, {"OMP_WAIT_POLICY=active"}).at("OMP_WAIT_POLICY"),
            "active");
  EXPECT_EQ(environment(job_of_two(), 0, {"GOMP_SPINCOUNT=1000"}).count("OMP_WAIT_POLICY"), 0U);
}

TEST(RankEnvironment, WhatEnvGivesIsKnownWhenTheRestIsDecided) {
  JobDescription job = job_of_two();
  job.extra = {{"OMP_NUM_THREADS", "1"}, {"ARGOSY_MALLOC", "huge"}};
  const Map map = environment(job, 0);
  EXPECT_EQ(map.at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(map.count("OMP_WAIT_POLICY"), 0U);
  EXPECT_EQ(map.count("GLIBC_TUNABLES"), 1U);
}

TEST(RankEnvironment, AllLibrariesGetTheKernelsOfOneInstructionSet) {
  JobDescription job = job_of_two();  // on AVX-512
  job.cpu_capability = "avx2";
  Map map = environment(job, 0);
  EXPECT_EQ(map.at("ATEN_CPU_CAPABILITY"), "avx2");
  EXPECT_EQ(map.at("DNNL_MAX_CPU_ISA"), "AVX2");
  EXPECT_EQ(map.at("OPENBLAS_CORETYPE"), "HASWELL");
  EXPECT_EQ(environment(job, 0, {"OPENBLAS_CORETYPE=SKYLAKEX"}).at("OPENBLAS_CORETYPE"), "HASWELL")
      << "an outer launcher's";
  job.cpu_capability = "avx512";
  map = environment(job, 0);
  EXPECT_EQ(map.at("DNNL_MAX_CPU_ISA"), "AVX512_CORE");
  EXPECT_EQ(map.at("OPENBLAS_CORETYPE"), "SKYLAKEX");
  map = environment(job_of_two(), 0, {"ATEN_CPU_CAPABILITY=default"});
  EXPECT_EQ(map.at("DNNL_MAX_CPU_ISA"), "SSE41");
  EXPECT_EQ(map.at("OPENBLAS_CORETYPE"), "NEHALEM");
  map = environment(job_of_two(), 0, {"ATEN_CPU_CAPABILITY=avx2", "OPENBLAS_CORETYPE=ZEN"});
  EXPECT_EQ(map.at("OPENBLAS_CORETYPE"), "ZEN") << "the user's choice";
  EXPECT_EQ(environment(job_of_two(), 0).count("ATEN_CPU_CAPABILITY"), 0U);
}

TEST(RankEnvironment, KernelsAreChosenForWhatIsNotLaunchedToo) {
  using List = std::vector<std::string>;
  EXPECT_EQ(kernel_environment(true, {"HOME=/"}), List{"OPENBLAS_CORETYPE=SKYLAKEX"});
  EXPECT_EQ(kernel_environment(false, {"HOME=/"}), List{});
  EXPECT_EQ(kernel_environment(true, {"OPENBLAS_CORETYPE=ZEN"}), List{}) << "the user's choice";
  EXPECT_EQ(kernel_environment(true, {"ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2"}),
            (List{"DNNL_MAX_CPU_ISA=AVX2", "MKL_CBWR=AVX2", "OPENBLAS_CORETYPE=HASWELL"}));
}

TEST(RankEnvironment, HugePagesAreAskedFor) {
  EXPECT_EQ(environment(job_of_two(), 0).count("GLIBC_TUNABLES"), 0U);
  EXPECT_EQ(environment(job_of_two(), 0, {"ARGOSY_MALLOC=huge"}).at("GLIBC_TUNABLES"),
            "glibc.malloc.hugetlb=1");
  EXPECT_EQ(environment(job_of_two(), 0, {"ARGOSY_MALLOC=huge", "GLIBC_TUNABLES=a=b"})
                .at("GLIBC_TUNABLES"),
            "a=b");
}

TEST(RankEnvironment, GpusGoRoundOrNotAtAll) {
  JobDescription job = job_of_two();
  job.node.gpus = 2;
  for (const char* name :
       {"FLAGS_selected_gpus", "FLAGS_selected_accelerators", "PADDLE_LOCAL_DEVICE_IDS"}) {
    EXPECT_EQ(environment(job, 1).at(name), "1");
  }
  EXPECT_EQ(environment(job, 1).at("PADDLE_WORLD_DEVICE_IDS"), "0,1");
  job.ranks_of_nodes = {2, 3};
  EXPECT_EQ(environment(job, 1).at("PADDLE_WORLD_DEVICE_IDS"), "0,1,0,1,2");
  EXPECT_EQ(environment(job, 1).count("PADDLE_DISTRI_BACKEND"), 0U);
  job.node.gpus = 1;  // too few for two ranks: a CPU job to Paddle
  EXPECT_EQ(environment(job, 0).at("PADDLE_DISTRI_BACKEND"), "gloo");
  const Map without =
      environment(job, 0, {"PADDLE_WORLD_DEVICE_IDS=0,1", "FLAGS_selected_accelerators=0"});
  for (const char* name : {"FLAGS_selected_gpus",
                           "FLAGS_selected_accelerators",
                           "PADDLE_LOCAL_DEVICE_IDS",
                           "PADDLE_WORLD_DEVICE_IDS"}) {
    EXPECT_EQ(without.count(name), 0U) << name;
  }
}

TEST(RankEnvironment, AmdsGpusAreGivenInTheirOwnVariableToo) {
  JobDescription job = job_of_two();
  job.node.gpus = 2;
  job.node.found.driver = os::GpuDriver::kAmd;
  EXPECT_EQ(environment(job, 1).count("HIP_VISIBLE_DEVICES"), 0U);
  job.gpus = {2, 5};
  const Map both = environment(job, 1, {"HIP_VISIBLE_DEVICES=2,3,5"});
  EXPECT_EQ(both.at("HIP_VISIBLE_DEVICES"), "2,5");
  EXPECT_EQ(both.at("CUDA_VISIBLE_DEVICES"), "2,5");
  job.virtual_local_rank = true;
  EXPECT_EQ(environment(job, 1).at("HIP_VISIBLE_DEVICES"), "5");
  job.gpus.clear();
  const Map own = environment(job, 1, {"HIP_VISIBLE_DEVICES=4,6", "CUDA_VISIBLE_DEVICES=0,1"});
  EXPECT_EQ(own.at("HIP_VISIBLE_DEVICES"), "6");
  EXPECT_EQ(own.at("CUDA_VISIBLE_DEVICES"), "6");
  EXPECT_EQ(environment(job, 1, {"CUDA_VISIBLE_DEVICES=4,6"}).at("HIP_VISIBLE_DEVICES"), "6");
  const Map empty = environment(job, 1, {"HIP_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES="});
  EXPECT_EQ(empty.at("HIP_VISIBLE_DEVICES"), "1") << "AMD's runtime takes them for not set";
}

TEST(RankEnvironment, OnlyRankZeroMayDraw) {
  JobDescription job = job_of_two();
  job.bar = true;
  job.columns = 71;
  EXPECT_EQ(environment(job, 0).at("ARGOSY_PROGRESS"), "tty");
  EXPECT_EQ(environment(job, 0).at("COLUMNS"), "71");
  EXPECT_EQ(environment(job, 1).at("ARGOSY_PROGRESS"), "plain");
  EXPECT_EQ(environment(job, 1).count("COLUMNS"), 0U);
}

TEST(RankEnvironment, LogFolderForBothWorlds) {
  JobDescription job = job_of_two();
  job.log_dir = "/logs/run-1";
  EXPECT_EQ(environment(job, 0).at("ARGOSY_LOG_DIR"), "/logs/run-1");
  EXPECT_EQ(environment(job, 0).at("PADDLE_LOG_DIR"), "/logs/run-1");
}

}  // namespace
}  // namespace argosy::launch
