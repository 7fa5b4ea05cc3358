// Variables of real jobs on Debian 12: Slurm 22.05.8, OpenMPI 4.1.4, MPICH 4.0.2.
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/clusters/cluster.h"

namespace argosy::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

std::optional<ClusterTask> task_in(const Variables& variables, TaskFor purpose = TaskFor::kRank) {
  return find_task(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      purpose);
}

Variables both(Variables one, const Variables& other) {
  one.insert(other.begin(), other.end());
  return one;
}

/// Rank 3 of `srun -N2 -n4`, placed 3 + 1.
const Variables kSrun{{"SLURMD_NODENAME", "node2"},
                      {"SLURM_GTIDS", "3"},
                      {"SLURM_JOB_ID", "3"},
                      {"SLURM_JOB_NODELIST", "node[1-2]"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "1"},
                      {"SLURM_NTASKS", "4"},
                      {"SLURM_PROCID", "3"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEP_NODELIST", "node[1-2]"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_STEP_TASKS_PER_NODE", "3,1"},
                      {"SLURM_TASKS_PER_NODE", "3,1"}};

/// What Slurm tells the second of mpirun's daemons in `salloc -N2 -n4`, and its ranks inherit.
const Variables kDaemon{{"SLURM_JOB_ID", "4"},
                        {"SLURM_JOB_NODELIST", "node[1-2]"},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_NODEID", "1"},
                        {"SLURM_NTASKS", "2"},
                        {"SLURM_PROCID", "1"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_STEP_NODELIST", "node[1-2]"},
                        {"SLURM_STEP_NUM_TASKS", "2"},
                        {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}};

TEST(Clusters, NoneSpeaks) {
  EXPECT_FALSE(task_in({}));
  EXPECT_FALSE(task_in({{"HOSTNAME", "a"}, {"RANK", "1"}}, TaskFor::kLauncher));
}

TEST(Clusters, Srun) {
  const ClusterTask task = task_in(kSrun).value();
  EXPECT_EQ(task.system, "Slurm");
  EXPECT_EQ(task.task, 3);
  EXPECT_EQ(task.tasks, 4);
  EXPECT_EQ(task.local_task, 0);
  EXPECT_EQ(task.local_tasks, 1);  // uneven placement
  EXPECT_THAT(task.hosts, ElementsAre("node1", "node2"));
  EXPECT_EQ(task.job, "slurm-3.0");
  EXPECT_EQ(meeting_of(task).host, "node1");
}

TEST(Clusters, ABatchScriptIsNoTask) {
  Variables batch = kSrun;  // sbatch's script finds SLURM_PROCID=0, but no step
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(task_in(batch));
  EXPECT_TRUE(in_slurm_allocation([&](const char* name) -> std::optional<std::string> {
    return batch.contains(name) ? std::optional(batch.at(name)) : std::nullopt;
  }));
}

TEST(Clusters, MpirunOfOpenMpi) {
  const Variables alone{{"OMPI_COMM_WORLD_RANK", "3"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"OMPI_COMM_WORLD_NODE_RANK", "3"},
                        {"PMIX_RANK", "3"},
                        {"PMIX_NAMESPACE", "96796673"}};
  const ClusterTask task = task_in(alone).value();
  EXPECT_EQ(task.system, "OpenMPI");
  EXPECT_EQ(task.job, "mpi-96796673");
  EXPECT_TRUE(task.one_host());
  EXPECT_EQ(meeting_of(task).host, "127.0.0.1");
}

TEST(Clusters, MpirunInsideSlurmComesFirst) {
  const ClusterTask task = task_in(both({{"OMPI_COMM_WORLD_RANK", "3"},
                                         {"OMPI_COMM_WORLD_SIZE", "4"},
                                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                         {"PMIX_NAMESPACE", "98697217"}},
                                        kDaemon))
                               .value();
  EXPECT_EQ(task.system, "OpenMPI");
  EXPECT_EQ(task.task, 3);
  EXPECT_EQ(task.local_task, 1);
  EXPECT_EQ(meeting_of(task).host, "node1");
}

TEST(Clusters, MpirunFromABatchScriptFindsTheFirstHostOnEach) {
  const Variables rank{{"OMPI_COMM_WORLD_RANK", "0"},
                       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                       {"PMIX_NAMESPACE", "1"}};
  const Variables allocation{{"SLURM_JOB_ID", "4"}, {"SLURM_JOB_NODELIST", "node[1-2]"}};
  // Its daemons are a step on the hosts other than the one that it runs on.
  const Variables daemon =
      both({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NODELIST", "node2"}}, allocation);
  EXPECT_EQ(meeting_of(*task_in(both(rank, allocation))).host, "node1");
  EXPECT_EQ(meeting_of(*task_in(both(rank, daemon))).host, "node1");
}

TEST(Clusters, MpiexecOfMpich) {
  const Variables hydra{{"PMI_RANK", "3"},
                        {"PMI_SIZE", "4"},
                        {"PMI_FD", "18"},
                        {"MPI_LOCALRANKID", "3"},
                        {"MPI_LOCALNRANKS", "4"}};
  const ClusterTask task = task_in(hydra).value();
  EXPECT_EQ(task.system, "MPICH");
  EXPECT_EQ(task.task, 3);
  EXPECT_EQ(task.local_tasks, 4);
  EXPECT_THAT(task.job, HasSubstr("mpich-"));
  Variables inside = both(
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}},
      kDaemon);
  EXPECT_EQ(task_in(inside)->job, "mpich-slurm-4.0");
  EXPECT_EQ(task_in(inside)->system, "MPICH");
  inside.erase("MPI_LOCALRANKID");  // srun --mpi=pmi2
  EXPECT_EQ(task_in(inside)->system, "Slurm");
}

TEST(Clusters, PlatformsStartLaunchersNotRanks) {
  const Variables pod{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                      {"MASTER_ADDR", "job-master-0"},
                      {"MASTER_PORT", "23456"},
                      {"RANK", "1"},
                      {"WORLD_SIZE", "2"}};
  EXPECT_FALSE(task_in(pod));
  EXPECT_EQ(task_in(pod, TaskFor::kLauncher)->task, 1);
  EXPECT_EQ(meeting_of(*task_in(pod, TaskFor::kLauncher)).host, "job-master-0");
  EXPECT_EQ(meeting_of(*task_in(pod, TaskFor::kLauncher)).port, 23456);
  EXPECT_FALSE(task_in(both({{"LOCAL_RANK", "0"}}, pod), TaskFor::kLauncher));  // a launcher's rank
  Variables cloud{{"PADDLE_TRAINERS", "10.0.0.1,10.0.0.2"}, {"POD_IP", "10.0.0.2"}};
  EXPECT_EQ(task_in(cloud, TaskFor::kLauncher)->task, 1);
  EXPECT_EQ(meeting_of(*task_in(cloud, TaskFor::kLauncher)).host, "10.0.0.1");
  cloud["POD_IP"] = "10.0.0.3";
  EXPECT_THROW((void)task_in(cloud, TaskFor::kLauncher), ConfigError);
}

TEST(Clusters, PlatformsThatListTheTrainers) {
  const Variables list{{"TRAINER_IP_LIST", "10.0.0.1,10.0.0.2"}, {"PADDLE_TRAINER_ID", "1"}};
  EXPECT_EQ(task_in(list, TaskFor::kLauncher)->task, 1);
  EXPECT_EQ(task_in(list, TaskFor::kLauncher)->tasks, 2);
  const std::string endpoints = "10.0.0.1:6170,10.0.0.1:6171,10.0.0.2:6170,10.0.0.2:6171";
  const Variables job{{"PADDLE_TRAINER_ENDPOINTS", endpoints},
                      {"PADDLE_TRAINER_ID", "2"},
                      {"PADDLE_TRAINERS_NUM", "4"}};
  const ClusterTask task = task_in(job, TaskFor::kLauncher).value();
  EXPECT_EQ(task.task, 1);  // the host of the third endpoint
  EXPECT_EQ(task.tasks, 2);
  EXPECT_EQ(meeting_of(task).host, "10.0.0.1");
  EXPECT_EQ(meeting_of(task).port, 6170);
  EXPECT_EQ(task_in({{"DISTRIBUTED_TRAINER_ENDPOINTS", endpoints}, {"POD_IP", "10.0.0.2"}},
                    TaskFor::kLauncher)
                ->task,
            1);
  EXPECT_FALSE(task_in(job));  // such a process may be a rank: its variables say so
  EXPECT_FALSE(task_in(both({{"PADDLE_LOCAL_RANK", "0"}}, job), TaskFor::kLauncher));
  EXPECT_THROW((void)task_in({{"PADDLE_TRAINER_ENDPOINTS", "nonsense"}}, TaskFor::kLauncher),
               ConfigError);
}

TEST(Clusters, JobsMeetAtPortsOfTheirOwn) {
  ClusterTask one{.job = "slurm-1.0"};
  ClusterTask two{.job = "slurm-1.1"};
  EXPECT_NE(meeting_of(one).port, meeting_of(two).port);
  EXPECT_EQ(meeting_of(one).port, meeting_of(one).port);
}

TEST(Clusters, WhatCannotBeIsNamed) {
  const auto refusal = [](Variables variables, const char* name, const char* value) {
    if (value == nullptr) {
      variables.erase(name);
    } else {
      variables[name] = value;
    }
    try {
      (void)task_in(variables);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal(kSrun, "SLURM_PROCID", "x"), HasSubstr("SLURM_PROCID=x: expected a whole"));
  EXPECT_THAT(refusal(kSrun, "SLURM_LOCALID", nullptr), HasSubstr("SLURM_LOCALID is not set"));
  EXPECT_THAT(refusal(kSrun, "SLURM_PROCID", "4"), HasSubstr("task 4 of 4"));
  EXPECT_THAT(refusal(kSrun, "SLURM_NODEID", "2"), HasSubstr("names 2 nodes"));
}

}  // namespace
}  // namespace argosy::rendezvous
