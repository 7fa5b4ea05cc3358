#include "argosy/launch/job.h"

#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::launch {
namespace {

using testing::HasSubstr;

class JobTest : public testing::Test {
 protected:
  void SetUp() override { ::unsetenv("CUDA_VISIBLE_DEVICES"); }
  static int ranks(LaunchOptions options, int gpus) {
    options.log_dir = "";
    return prepare_job(options, {.cores = 6, .gpus = gpus}).description.ranks;
  }
};

TEST_F(JobTest, GpusThatAreGivenAreAllThatCount) {
  EXPECT_EQ(ranks({.gpus = {0, 5}}, 8), 2);
  EXPECT_EQ(ranks({.nproc_per_node = "gpu", .gpus = {0, 5}}, 8), 2);
  EXPECT_EQ(ranks({.nproc_per_node = "auto", .gpus = {0, 5}}, 8), 2);
  EXPECT_EQ(ranks({.nproc_per_node = "4", .gpus = {0, 5}}, 8), 4);
  EXPECT_EQ(ranks({.nproc_per_node = "gpu"}, 8), 8);
  EXPECT_THAT(test::error_text<UsageError>([] {
                (void)ranks({.gpus = {0, 8}}, 8);
              }),
              HasSubstr("there is no GPU 8: this machine has 8"));
}

TEST_F(JobTest, GpusThatNobodySeesGetTheirRanksAllTheSame) {
  testing::internal::CaptureStderr();
  const Job job = prepare_job({.gpus = {0, 1}, .log_dir = ""}, {.cores = 6, .gpus = 0});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("[launch] --gpus: no NVIDIA GPU is visible here"));
  EXPECT_EQ(job.description.ranks, 2);
  const std::vector<std::string> environment = rank_environment(job.description, 1, {});
  EXPECT_THAT(environment, testing::Contains("CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_THAT(environment, testing::Contains("LOCAL_RANK=1"));
}

TEST_F(JobTest, OneRankUnlessAnotherToolsDefaultIsWanted) {
  EXPECT_EQ(ranks({}, 8), 1);
  EXPECT_EQ(ranks({.rank_per_gpu = true}, 8), 8);
  EXPECT_EQ(ranks({.rank_per_gpu = true}, 0), 1);
}

TEST_F(JobTest, PortsAreHeldAndRunsHaveNamesOfTheirOwn) {
  const Job one = prepare_job({.nproc_per_node = "2", .log_dir = ""}, {});
  const Job two = prepare_job({.log_dir = ""}, {});
  EXPECT_NE(one.description.run_id, two.description.run_id);
  EXPECT_NE(one.description.token, two.description.token);
  EXPECT_EQ(one.held_ports.size(), 3U);  // two ranks' and MASTER_PORT
  EXPECT_THAT(
      test::error_text<Error>(
          [&] { (void)prepare_job({.master_port = one.description.master_port}, {}); }),
      testing::AllOf(HasSubstr("[launch.ports] --master_port "), HasSubstr("Give another one")));
}

}  // namespace
}  // namespace argosy::launch
