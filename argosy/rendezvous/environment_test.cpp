#include "argosy/rendezvous/environment.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

JobEnvironment read(const Variables& variables) {
  return read_environment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const Variables& variables) {
  return test::error_text<ConfigError>([&] { (void)read(variables); });
}

Variables torchrun() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"GROUP_RANK", "1"},
          {"MASTER_ADDR", "10.0.0.1"},
          {"MASTER_PORT", "29500"}};
}

Variables paddle() {
  return {{"PADDLE_TRAINER_ID", "1"},
          {"PADDLE_GLOBAL_RANK", "1"},
          {"PADDLE_TRAINERS_NUM", "2"},
          {"PADDLE_GLOBAL_SIZE", "2"},
          {"PADDLE_LOCAL_RANK", "1"},
          {"PADDLE_RANK_IN_NODE", "1"},
          {"PADDLE_LOCAL_SIZE", "2"},
          {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6170,10.0.0.1:6171"},
          {"PADDLE_CURRENT_ENDPOINT", "10.0.0.1:6171"},
          {"PADDLE_MASTER", "10.0.0.1:35789"}};
}

Variables with(Variables base, const std::string& name, const std::string& value) {
  base[name] = value;
  return base;
}

Variables without(Variables base, const std::string& name) {
  base.erase(name);
  return base;
}

TEST(Environment, OfAServerTheVariablesOfTrainersDescribeOthers) {
  Variables server = {{"RANK", "0"},
                      {"WORLD_SIZE", "1"},
                      {"TRAINING_ROLE", "PSERVER"},
                      {"PADDLE_TRAINERS_NUM", "2"},
                      {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6170,10.0.0.1:6171"}};
  EXPECT_EQ(read(server).world_size, 1);
  EXPECT_THAT(refusal(with(server, "TRAINING_ROLE", "TRAINER")), HasSubstr("contradictory"));
  // As Paddle's own launcher starts it.
  EXPECT_EQ(read(without(without(server, "RANK"), "WORLD_SIZE")).world_size, 1);
}

TEST(Environment, NothingSetIsOneProcess) {
  const JobEnvironment job = read({{"PATH", "/bin"}});
  EXPECT_EQ(job.rank, 0);
  EXPECT_EQ(job.world_size, 1);
  EXPECT_EQ(job.local_rank, 0);
  EXPECT_EQ(job.local_world_size, 1);
  EXPECT_EQ(job.source, "");
  EXPECT_EQ(job.master_port, 0);
}

TEST(Environment, ReadsTorchruns) {
  const JobEnvironment job = read(torchrun());
  EXPECT_EQ(job.rank, 3);
  EXPECT_EQ(job.world_size, 4);
  EXPECT_EQ(job.local_rank, 1);
  EXPECT_EQ(job.local_world_size, 2);
  EXPECT_EQ(job.node_rank, 1);
  EXPECT_EQ(job.master_addr, "10.0.0.1");
  EXPECT_EQ(job.master_port, 29500);
  EXPECT_EQ(job.source, "torchrun's");
  EXPECT_FALSE(job.master_port_is_torchruns);
  EXPECT_TRUE(
      read(with(torchrun(), "TORCHELASTIC_USE_AGENT_STORE", "True")).master_port_is_torchruns);
}

TEST(Environment, ReadsPaddles) {
  const JobEnvironment job = read(paddle());
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.world_size, 2);
  EXPECT_EQ(job.local_rank, 1);
  EXPECT_EQ(job.local_world_size, 2);
  EXPECT_EQ(job.master_port, 35789);
  EXPECT_EQ(job.source, "Paddle's");
}

TEST(Environment, ChoosesTheMasterInPaddlesOrder) {
  Variables all = paddle();
  EXPECT_EQ(read(without(all, "PADDLE_MASTER")).master_port, 6170);
  all["PADDLE_MASTER_ENDPOINT"] = "10.0.0.8:77";  // of its launcher's --run_mode rpc
  EXPECT_EQ(read(without(all, "PADDLE_MASTER")).master_port, 77);
  EXPECT_EQ(read(all).master_port, 35789);
  all["MASTER_ADDR"] = "10.0.0.9";
  all["MASTER_PORT"] = "1234";
  EXPECT_EQ(read(all).master_addr, "10.0.0.9");
  EXPECT_EQ(read(all).master_port, 1234);
}

TEST(Environment, ReadsTheLaunchers) {
  Variables job = with(torchrun(), "ARGOSY_STORE", "[fd00::1]:4000");
  job["ARGOSY_TOKEN"] = "secret";
  job["ARGOSY_RUN_ID"] = "r7";
  const JobEnvironment read_job = read(job);
  EXPECT_EQ(read_job.store_host, "fd00::1");
  EXPECT_EQ(read_job.store_port, 4000);
  EXPECT_EQ(read_job.token, "secret");
  EXPECT_EQ(read_job.run_id, "r7");
  job.erase("MASTER_ADDR");
  job.erase("MASTER_PORT");
  EXPECT_EQ(read(job).master_port, 0) << "a hosted store needs no master";
}

TEST(Environment, AgreesWhenBothToolsSaySo) {
  Variables both = paddle();
  both["RANK"] = "1";
  both["WORLD_SIZE"] = "2";
  EXPECT_EQ(read(both).source, "torchrun's and Paddle's");
}

TEST(Environment, RefusesContradictions) {
  EXPECT_THAT(refusal({{"RANK", "1"}, {"PADDLE_TRAINER_ID", "0"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("[rendezvous.environment] contradictory variables: RANK=1, "
                        "PADDLE_TRAINER_ID=0."));
  EXPECT_THAT(refusal(with(paddle(), "PADDLE_GLOBAL_SIZE", "3")),
              HasSubstr("PADDLE_TRAINERS_NUM=2, PADDLE_GLOBAL_SIZE=3"));
  EXPECT_THAT(refusal(with(torchrun(), "RANK", "4")),
              AllOf(HasSubstr("RANK=4, WORLD_SIZE=4"), HasSubstr("below the number of ranks")));
  EXPECT_THAT(refusal(with(torchrun(), "LOCAL_RANK", "2")),
              AllOf(HasSubstr("LOCAL_RANK=2"), HasSubstr("LOCAL_WORLD_SIZE=2")));
  EXPECT_THAT(refusal(with(torchrun(), "LOCAL_WORLD_SIZE", "5")), HasSubstr("LOCAL_WORLD_SIZE=5"));
  EXPECT_THAT(refusal(with(paddle(), "PADDLE_TRAINER_ENDPOINTS", "a:1,b:2,c:3")),
              AllOf(HasSubstr("lists 3 endpoints for 2 ranks"), HasSubstr("a:1,b:2,c:3")));
  EXPECT_THAT(refusal(with(paddle(), "PADDLE_TRAINER_ENDPOINTS", "a:1,a:1")),
              HasSubstr("expected each endpoint once, got a:1 twice"));
  EXPECT_THAT(refusal(with(paddle(), "PADDLE_CURRENT_ENDPOINT", "10.0.0.1:6170")),
              AllOf(HasSubstr("PADDLE_CURRENT_ENDPOINT=10.0.0.1:6170 is not where"),
                    HasSubstr("has rank 1: expected 10.0.0.1:6171")));
}

TEST(Environment, RefusesPartialSets) {
  EXPECT_THAT(refusal({{"RANK", "0"}}),
              HasSubstr("RANK=0 set without WORLD_SIZE (or PADDLE_TRAINERS_NUM)"));
  EXPECT_THAT(refusal({{"PADDLE_TRAINERS_NUM", "2"}}),
              HasSubstr("PADDLE_TRAINERS_NUM=2 set without RANK (or PADDLE_TRAINER_ID)"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("no place to meet"));
  EXPECT_THAT(refusal(without(torchrun(), "MASTER_PORT")),
              HasSubstr("MASTER_ADDR=10.0.0.1 set without MASTER_PORT"));
  EXPECT_THAT(refusal(without(torchrun(), "MASTER_ADDR")),
              HasSubstr("MASTER_PORT=29500 set without MASTER_ADDR"));
  EXPECT_THAT(refusal({{"MASTER_ADDR", "a"}, {"LOCAL_RANK", "1"}}),
              HasSubstr("LOCAL_RANK=1, MASTER_ADDR=a set, but neither RANK and WORLD_SIZE"));
  EXPECT_THAT(refusal({{"PADDLE_CURRENT_ENDPOINT", "a:1"}}), HasSubstr("but neither RANK"));
}

TEST(Environment, RefusesWhatIsNoNumberOrEndpoint) {
  for (const char* bad : {"x", "-1", "1.5", "99999999999999999999", " 1"}) {
    EXPECT_THAT(refusal(with(torchrun(), "RANK", bad)),
                HasSubstr(std::string("RANK=") + bad + ": expected a whole number from 0"));
  }
  EXPECT_THAT(refusal(with(torchrun(), "WORLD_SIZE", "0")), HasSubstr("from 1 to"));
  for (const char* bad : {"0", "65536", "http", ""}) {
    EXPECT_THAT(refusal(with(torchrun(), "MASTER_PORT", bad)), HasSubstr("MASTER_PORT="));
  }
  for (const char* bad : {"host", ":1", "host:", "host:0", "::1:29500", "a b:1", "http://a:1"}) {
    EXPECT_THAT(refusal(with(paddle(), "PADDLE_MASTER", bad)), HasSubstr("PADDLE_MASTER="));
  }
}

TEST(Environment, ReadsTheQueuesWhereNoLauncherSpoke) {
  Variables slurm{{"SLURM_JOB_ID", "17"},
                  {"SLURM_STEP_ID", "2"},
                  {"SLURM_PROCID", "3"},
                  {"SLURM_STEP_NUM_TASKS", "4"},
                  {"SLURM_LOCALID", "0"},
                  {"SLURM_NODEID", "1"},
                  {"SLURM_STEP_TASKS_PER_NODE", "3,1"},
                  {"SLURM_STEP_NODELIST", "node[1-2]"}};
  const JobEnvironment job = read(slurm);
  EXPECT_EQ(job.rank, 3);
  EXPECT_EQ(job.world_size, 4);
  EXPECT_EQ(job.local_rank, 0);
  EXPECT_EQ(job.local_world_size, 1);
  EXPECT_EQ(job.master_addr, "node1");
  EXPECT_GE(job.master_port, 15000);
  EXPECT_LT(job.master_port, 32000);
  EXPECT_EQ(job.run_id, "slurm-17.2");
  EXPECT_EQ(job.source, "Slurm's");
  const Variables placed = with(with(slurm, "MASTER_ADDR", "ib1"), "MASTER_PORT", "99");
  EXPECT_EQ(read(placed).master_addr, "ib1");
  EXPECT_EQ(read(placed).master_port, 99);
  slurm = with(slurm, "RANK", "0");  // a launcher's word comes first
  slurm["WORLD_SIZE"] = "1";
  EXPECT_EQ(read(slurm).world_size, 1);
}

TEST(Environment, AsksForTheHostThatMpirunKeepsToItself) {
  const Variables far{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                      {"PMIX_NAMESPACE", "5"}};
  EXPECT_THAT(refusal(far), HasSubstr("not which host rank 0 is on"));
  EXPECT_THAT(refusal(with(far, "MASTER_ADDR", "a")), HasSubstr("MASTER_PORT"));
  const JobEnvironment said = read(with(with(far, "MASTER_ADDR", "a"), "MASTER_PORT", "9"));
  EXPECT_EQ(said.master_addr, "a");
  EXPECT_EQ(said.run_id, "");
}

TEST(Environment, RanksOfAnMpirunOfOpenMpiShareItsSecret) {
  const Variables rank{
      {"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "2"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"PMIX_NAMESPACE", "5"},
      {"OMPI_MCA_orte_precondition_transports", "69cca522aa03e1fa-15c1791e3c5e0f0a"}};
  EXPECT_EQ(read(rank).token, "mpirun 69cca522aa03e1fa-15c1791e3c5e0f0a");
  EXPECT_EQ(read(with(rank, "ARGOSY_TOKEN", "own")).token, "own");
  Variables alone = rank;
  alone["OMPI_COMM_WORLD_RANK"] = alone["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  alone["OMPI_COMM_WORLD_SIZE"] = alone["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  EXPECT_EQ(read(alone).token, "");
}

TEST(Environment, ABatchScriptsOwnStepIsOneProcess) {
  const Variables batch{{"SLURM_JOB_ID", "17"},
                        {"SLURM_JOB_NODELIST", "node1"},
                        {"SLURM_PROCID", "0"},
                        {"SLURM_NTASKS", "4"}};
  testing::internal::CaptureStderr();
  EXPECT_EQ(read(batch).world_size, 1);
  EXPECT_EQ(read(batch).world_size, 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, AllOf(HasSubstr("SLURM_NTASKS=4"), HasSubstr("works alone")));
  EXPECT_EQ(said.find("works alone"), said.rfind("works alone")) << "once";
}

}  // namespace
}  // namespace argosy::rendezvous
