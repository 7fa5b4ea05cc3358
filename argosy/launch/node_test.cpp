#include "argosy/launch/node.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::launch {
namespace {

using testing::HasSubstr;

TEST(Processes, NumberOrWord) {
  const Node cpu_only{6, 0, false};
  const Node with_gpus{6, 4, false};
  EXPECT_EQ(processes_per_node("3", cpu_only), 3);
  EXPECT_EQ(processes_per_node("cpu", with_gpus), 6);
  EXPECT_EQ(processes_per_node("auto", cpu_only), 6);
  EXPECT_EQ(processes_per_node("auto", with_gpus), 4);
  EXPECT_EQ(processes_per_node("gpu", with_gpus), 4);
}

TEST(Processes, RefusesNonsenseAndSaysWhatIsExpected) {
  const Node node{6, 0, false};
  for (const char* bad : {"0", "-1", "abc", "", "2x", "4097", "99999999999999999999"}) {
    try {
      (void)processes_per_node(bad, node);
      ADD_FAILURE() << bad;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--nproc_per_node: expected a number from 1 to 4096"));
      EXPECT_THAT(error.what(), HasSubstr("got \"" + std::string(bad) + "\""));
    }
  }
  EXPECT_THROW((void)processes_per_node("gpu", node), UsageError);
}

os::Gpus gpus(os::GpuDriver driver, size_t count, std::optional<std::string> list = std::nullopt) {
  return {.driver = driver,
          .all = std::vector<os::Gpu>(count),
          .list = std::move(list),
          .visible = std::vector<os::Gpu>(count)};
}

std::string refusal(const std::vector<int>& wanted, const os::Gpus& gpus) {
  return test::error_text<UsageError>([&] { (void)check_gpus(wanted, gpus); });
}

TEST(Node, GpusThatAreAskedForMustBeThere) {
  using enum os::GpuDriver;
  EXPECT_EQ(refusal({0, 3}, gpus(kNvidia, 4)), "nothing was thrown");
  EXPECT_THAT(refusal({0, 4}, gpus(kNvidia, 4)), HasSubstr("there is no GPU 4"));
  EXPECT_EQ(refusal({6}, gpus(kNvidia, 8, "6, 7")), "nothing was thrown");
  EXPECT_THAT(refusal({5}, gpus(kNvidia, 8, "6,7")),
              HasSubstr("GPU 5 is hidden by CUDA_VISIBLE_DEVICES=6,7"));
  EXPECT_THAT(refusal({5}, gpus(kAmd, 8, "6,7")),
              HasSubstr("GPU 5 is hidden by CUDA_VISIBLE_DEVICES=6,7"));
  os::Gpus own = gpus(kAmd, 8, "6,7");
  own.list_from = "HIP_VISIBLE_DEVICES";
  EXPECT_THAT(refusal({5}, own), HasSubstr("GPU 5 is hidden by HIP_VISIBLE_DEVICES=6,7"));
  EXPECT_EQ(refusal({0}, gpus(kNvidia, 4, "GPU-5a")), "nothing was thrown");
}

TEST(Node, GpusThatOnlyTheProgramKnowsAreTakenWithAWarning) {
  using enum os::GpuDriver;
  EXPECT_THAT(check_gpus({0, 1}, {}), HasSubstr("--gpus: no GPU is visible here"));
  EXPECT_EQ(check_gpus({0, 1}, gpus(kAmd, 2)), "");
  EXPECT_THAT(refusal({5}, gpus(kNone, 0, "6,7")),
              HasSubstr("GPU 5 is hidden by CUDA_VISIBLE_DEVICES=6,7"));
}

TEST(ThisNode, HasACore) {
  EXPECT_GE(this_node().cores, 1);
}

}  // namespace
}  // namespace argosy::launch
