#include "argosy/launch/cluster_options.h"

#include <stdlib.h>

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

LaunchOptions parse(std::vector<std::string> args,
                    const Variables& variables,
                    Dialect dialect = Dialect::kArgosy) {
  args.emplace_back("train");
  return parse_launch(
             args,
             [&](const char* name) -> std::optional<std::string> {
               const auto found = variables.find(name);
               return found == variables.end() ? std::nullopt : std::optional(found->second);
             },
             dialect)
      .options;
}

/// The launcher of the last of four tasks on two nodes, 3 + 1.
const Variables kTask{{"SLURM_JOB_ID", "3"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_PROCID", "2"},
                      {"SLURM_LOCALID", "2"},
                      {"SLURM_NODEID", "0"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_STEP_TASKS_PER_NODE", "3,1"},
                      {"SLURM_STEP_NODELIST", "node[1-2]"}};
const Variables kBatch{{"SLURM_JOB_ID", "3"}, {"SLURM_JOB_NODELIST", "node[1-2]"}};

TEST(ClusterOptions, EachTaskStartsARankOfItsNode) {
  const LaunchOptions options = parse({}, kTask);
  EXPECT_EQ(options.nodes.nodes, 4);
  EXPECT_EQ(options.nodes.node_rank, 2);
  EXPECT_EQ(options.nodes.meet_host, "node1");
  EXPECT_GE(options.nodes.meet_port, 15000);
  EXPECT_EQ(options.local_task, 2);
  EXPECT_EQ(options.local_tasks, 3);
  EXPECT_EQ(options.nproc_per_node, "1");
  EXPECT_EQ(options.job_id, "slurm-3.0");
  EXPECT_FALSE(options.through_srun);
}

TEST(ClusterOptions, ALauncherForEachNodeStartsAsManyAsItIsTold) {
  Variables one_each = kTask;
  one_each["SLURM_STEP_NUM_TASKS"] = "2";
  one_each["SLURM_STEP_TASKS_PER_NODE"] = "1(x2)";
  one_each["SLURM_PROCID"] = one_each["SLURM_NODEID"] = "1";
  one_each["SLURM_LOCALID"] = "0";
  const LaunchOptions options = parse({"--nproc_per_node=3"}, one_each);
  EXPECT_EQ(options.nproc_per_node, "3");
  EXPECT_EQ(options.nodes.nodes, 2);
  EXPECT_EQ(options.local_tasks, 1);
  try {
    (void)parse({"--nproc_per_node=3"}, kTask);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Slurm has started 3 launchers on this node"));
  }
}

TEST(ClusterOptions, WhoSaysItThemselvesIsObeyed) {
  EXPECT_EQ(parse({"--standalone"}, kTask).nodes.nodes, 1);
  EXPECT_EQ(parse({"--nnodes=1"}, kTask).nodes.nodes, 1);
  EXPECT_EQ(parse({}, kTask, Dialect::kTorchrun).nodes.nodes, 1);
  EXPECT_FALSE(parse({"--standalone"}, kBatch).through_srun);
  EXPECT_FALSE(parse({}, {}).through_srun);
}

TEST(ClusterOptions, AMeetingPlaceIsNoNumberOfNodes) {
  const LaunchOptions options = parse({"--master", "10.0.0.9:29511"}, kTask);
  EXPECT_EQ(options.nodes.nodes, 4);
  EXPECT_EQ(options.nodes.node_rank, 2);
  EXPECT_EQ(options.nodes.meet_host, "10.0.0.9");
  EXPECT_EQ(options.nodes.meet_port, 29511);
  EXPECT_EQ(parse({"--master_addr", "a", "--master_port", "9"}, kTask).nodes.meet_port, 9);
  EXPECT_TRUE(parse({"--master", "10.0.0.9:29511"}, kBatch).through_srun);
}

TEST(ClusterOptions, AShellThatATaskHasOpenedIsNoTask) {
  Variables shell = kTask;
  shell["SLURM_PTY_PORT"] = "4000";  // srun --pty bash
  shell["SLURM_STEP_NUM_TASKS"] = "1";
  shell["SLURM_STEP_TASKS_PER_NODE"] = "1";
  shell["SLURM_PROCID"] = shell["SLURM_LOCALID"] = "0";
  EXPECT_EQ(parse({"--nproc_per_node=4"}, shell).nodes.nodes, 1);
  EXPECT_FALSE(parse({}, shell).through_srun);
}

TEST(ClusterOptions, SallocsInteractiveStepIsTheAllocationsOwnShell) {
  Variables interactive = kTask;  // LaunchParameters=use_interactive_step
  interactive["SLURM_STEP_ID"] = "4294967290";
  interactive["SLURM_PTY_PORT"] = "34889";
  interactive["SLURM_STEP_NUM_TASKS"] = "1";
  interactive["SLURM_JOB_NODELIST"] = "node[1-2]";
  EXPECT_TRUE(parse({}, interactive).through_srun);
  Variables task = kTask;  // what srun starts there inherits the terminal's variable
  task["SLURM_PTY_PORT"] = "34889";
  EXPECT_EQ(parse({}, task).nodes.nodes, 4);
}

TEST(ClusterOptions, OneNodeThatSaysNoMoreNeedsNoSrun) {
  Variables one{{"SLURM_JOB_ID", "3"},
                {"SLURM_JOB_NODELIST", "node1"},
                {"SLURM_JOB_NUM_NODES", "1"},
                {"SLURM_NTASKS", "4"},
                {"SLURMD_NODENAME", "node1"}};
  EXPECT_TRUE(parse({}, one).through_srun);
  EXPECT_FALSE(parse({"--nproc_per_node=4"}, one).through_srun);
  one.erase("SLURM_NTASKS");
  EXPECT_FALSE(parse({}, one).through_srun);
  one.erase("SLURMD_NODENAME");  // salloc's shell on the login node
  EXPECT_TRUE(parse({}, one).through_srun);
}

TEST(ClusterOptions, WhoSwitchesStandaloneOffIsAskedNoMore) {
  EXPECT_EQ(parse({"--standalone=false"}, kTask).nodes.nodes, 4);
  Variables off = kTask;
  off["PET_STANDALONE"] = "0";
  EXPECT_EQ(parse({}, off).nodes.nodes, 4);
}

TEST(ClusterOptions, AJobThatTheUserLetsMeetHasNoNameOfItsHosts) {
  const Variables hydra{
      {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_EQ(parse({"--master=a:29500"}, hydra).job_id, "");  // its proxies' pids differ
  EXPECT_EQ(parse({"--master=a:29500", "--job_id=mine"}, hydra).job_id, "mine");
}

TEST(ClusterOptions, PodsOfOneJobHaveOneName) {
  Variables pod{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                {"MASTER_ADDR", "job-master-0"},
                {"MASTER_PORT", "23456"},
                {"RANK", "1"},
                {"WORLD_SIZE", "2"},
                {"HOSTNAME", "job-worker-0"}};
  const std::string worker = parse({}, pod).job_id;
  pod["HOSTNAME"] = "job-master-0";
  pod["RANK"] = "0";
  EXPECT_EQ(parse({}, pod).job_id, worker);
}

TEST(ClusterOptions, ATasksCoresAreItsThreads) {
  Variables cores = kTask;
  cores["SLURM_CPUS_PER_TASK"] = "8";
  EXPECT_EQ(parse({}, cores).threads, 8);
}

TEST(ClusterOptions, ABatchScriptsLauncherGoesThroughSrun) {
  EXPECT_TRUE(parse({}, kBatch).through_srun);
  ::unsetenv("SLURM_JOB_NUM_NODES");
  EXPECT_THAT(srun_command("/bin/argosy", Dialect::kArgosy, {"train"}, SrunTasks::kAsAllocated),
              ElementsAre("srun", "--mpi=none", "--input=0", "/bin/argosy", "launch", "train"));
  ::setenv("SLURM_JOB_NUM_NODES", "2", 1);
  EXPECT_THAT(srun_command("a", Dialect::kPaddle, {"-n", "4", "train"}, SrunTasks::kOnePerNode),
              testing::IsSupersetOf(
                  {"--ntasks-per-node=1", "--ntasks=2", "--cpu-bind=none", "paddle-launch"}));
}

TEST(ClusterOptions, AnIndexOfPodsIsANodeRankWhereThereAreNodes) {
  const Variables pod{{"JOB_COMPLETION_INDEX", "3"}};
  EXPECT_EQ(parse({}, pod).nodes.node_rank, -1);
  EXPECT_EQ(parse({"--nnodes=4", "--master=job-0.svc:29500"}, pod).nodes.node_rank, 3);
}

}  // namespace
}  // namespace argosy::launch
