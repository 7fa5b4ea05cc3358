// What people get wrong when they first train on several processes: each mistake in a real job,
// which ends within seconds in words that name it.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/launcher/launched.h"
#include "tests/support/owned_port.h"

namespace argosy::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

/// A job of two ranks of mistake_program.
struct Mistake {
  Launched job;
  int code;
  explicit Mistake(const std::string& name)
      : job({.args = {"--nproc_per_node=2", "--log_dir=", MISTAKE_PROGRAM, name}}),
        code(job.wait()) {}
};

TEST(Mistakes, ACollectiveInsideIfRank0BeforeTraining) {
  Mistake mistake("rank_0_reduces_then_all_train");
  EXPECT_NE(mistake.code, 0);
  EXPECT_THAT(mistake.job.err(),
              ContainsRegex("rank 0 called all_reduce .* where rank 1 called all_gather .* in the "
                            "same order: does one of them stand inside if \\(rank == 0\\)\\?"));
}

TEST(Mistakes, ACollectiveInsideIfRank0AfterTraining) {
  Mistake mistake("all_train_then_rank_0_reduces");
  EXPECT_NE(mistake.code, 0);
  EXPECT_THAT(
      mistake.job.err(),
      ContainsRegex("rank 1 left the group while others still needed it .*join\\(\\).* inside if "
                    "\\(rank == 0\\)\\?.* all_reduce"));
}

TEST(Mistakes, AStrategyThatMakesNoSense) {
  Mistake mistake("stage_4");
  EXPECT_NE(mistake.code, 0);
  EXPECT_THAT(mistake.job.err(),
              AllOf(HasSubstr("sharding_configs.stage"), HasSubstr("docs/guides/errors.md#")));
  EXPECT_THAT(mistake.job.err(), testing::Not(HasSubstr("terminate called")));
}

TEST(Mistakes, SettingsWhoseToggleIsOff) {
  Mistake mistake("stage_without_sharding");
  EXPECT_EQ(mistake.code, 0);
  EXPECT_THAT(mistake.job.err(), HasSubstr("sharding_configs without effect"));
}

TEST(Mistakes, TwoNodesWithNodeRank0) {
  const OwnedPort port;
  const Launched::Options node{.args = {"--nnodes=2",
                                        "--node_rank=0",
                                        "--master=127.0.0.1:" + std::to_string(port.port()),
                                        "--timeout=3",
                                        "--log_dir=",
                                        "true"},
                               .env = {"ARGOSY_TOKEN=a secret of sixteen"}};
  Launched first(node);
  ASSERT_TRUE(first.wait_for_error("waiting for 1 of 2 nodes"));
  Launched second(node);
  EXPECT_NE(second.wait(), 0);
  EXPECT_THAT(second.err(), HasSubstr("was node rank 0, or rank 0, given twice?"));
  EXPECT_NE(first.wait(), 0);
  EXPECT_THAT(first.err(), HasSubstr("not all nodes came: waiting for 1 of 2 nodes"));
}

TEST(Mistakes, AMisspeltOptionOfTheLauncher) {
  Launched job({.args = {"--seletected_gpus", "0,1", "true"}});
  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), HasSubstr("Did you mean --selected_gpus?"));
}

TEST(Mistakes, OneProcessAloneAtAMeetingOfTwo) {
  const OwnedPort port;
  Launched job({.shell = "env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                         std::to_string(port.port()) + " " + MISTAKE_PROGRAM + " own_loss"});
  EXPECT_NE(job.wait(), 0);
  EXPECT_THAT(job.err(), ContainsRegex("rank 1 .*did not come|waiting for .*1 of 2"));
}

TEST(Mistakes, TheSamplerOfTrainingInAnEvaluation) {
  Mistake mistake("padded_evaluation");
  EXPECT_NE(mistake.code, 0);
  EXPECT_THAT(mistake.job.err(), HasSubstr("evaluation_sampler"));
}

TEST(Mistakes, ATrainingThatNothingDivides) {
  Mistake mistake("bare_training");
  EXPECT_EQ(mistake.code, 0) << mistake.job.err();
  EXPECT_THAT(mistake.job.err(),
              HasSubstr("the strategy divides models (sharding), and rank 0 of 2 gave none to "
                        "distributed_model()"));
}

TEST(Mistakes, AWrapperThatTheFleetDidNotMakeIsNone) {
  Mistake mistake("own_wrapper");
  EXPECT_EQ(mistake.code, 0) << mistake.job.err();
  EXPECT_THAT(mistake.job.err(), testing::Not(HasSubstr("nothing was divided")));
}

TEST(Mistakes, TheLossOfRank0IsNotTakenForEverybodys) {
  Mistake mistake("own_loss");
  EXPECT_EQ(mistake.code, 0) << mistake.job.err();
  EXPECT_THAT(mistake.job.out(),
              AllOf(HasSubstr("of rank 0 alone 0\n"), HasSubstr("of all ranks 0.5\n")));
}

}  // namespace
}  // namespace argosy::test
