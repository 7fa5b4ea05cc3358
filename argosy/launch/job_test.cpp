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
    const std::vector<os::Gpu> all(static_cast<size_t>(gpus));
    return prepare_job(options,
                       {.cores = 6,
                        .gpus = gpus,
                        .found = {.driver = os::GpuDriver::kNvidia, .all = all, .visible = all}})
        .description.ranks;
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
              HasSubstr("[launch] --gpus: no GPU is visible here"));
  EXPECT_EQ(job.description.ranks, 2);
  const std::vector<std::string> environment = rank_environment(job.description, 1, {});
  EXPECT_THAT(environment, testing::Contains("CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_THAT(environment, testing::Contains("LOCAL_RANK=1"));
}

TEST_F(JobTest, RanksAreBoundToTheProcessorsNextToTheirGpus) {
  const std::vector<int> cpus = os::affinity_cpus();
  const std::vector<int> first{cpus.front()};
  const std::vector<int> last{cpus.back()};
  const Node node{.cores = 64,
                  .gpus = 2,
                  .found = {.driver = os::GpuDriver::kAmd,
                            .all = {{.cpus = last}, {.cpus = first}},
                            .visible = {{.cpus = last}, {.cpus = first}}}};
  const auto job_of = [&](LaunchOptions options) {
    options.cpu_bind = os::CpuBinding::kNuma;
    options.log_dir = "";
    return prepare_job(options, node).description;
  };
  const auto bound = [&](const LaunchOptions& options) { return job_of(options).cpus; };
  EXPECT_THAT(bound({.nproc_per_node = "gpu"}), testing::ElementsAre(last, first));
  EXPECT_THAT(bound({.gpus = {1}}), testing::ElementsAre(first));
  // And have as many threads, whatever the machine has.
  EXPECT_THAT(rank_environment(job_of({.gpus = {1}}), 0, {}),
              testing::Contains("OMP_NUM_THREADS=1"));
  // More ranks than GPUs: as without any.
  EXPECT_THAT(bound({.nproc_per_node = "3"}), testing::Each(testing::Not(testing::IsEmpty())));
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
