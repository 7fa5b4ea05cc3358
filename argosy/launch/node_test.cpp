#include "argosy/launch/node.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
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

TEST(Node, GpusThatAreAskedForMustBeThere) {
  const Node node{.gpus = 4};
  const auto refusal = [&](const std::vector<int>& wanted, std::optional<std::string> visible) {
    return test::error_text<UsageError>([&] { (void)check_gpus(wanted, node, visible); });
  };
  EXPECT_EQ(refusal({0, 3}, std::nullopt), "nothing was thrown");
  EXPECT_THAT(refusal({0, 4}, std::nullopt), testing::HasSubstr("there is no GPU 4"));
  EXPECT_EQ(refusal({6}, "6, 7"), "nothing was thrown");
  EXPECT_THAT(refusal({5}, "6,7"),
              testing::HasSubstr("GPU 5 is hidden by CUDA_VISIBLE_DEVICES=6,7"));
  EXPECT_EQ(refusal({0}, "GPU-5a"), "nothing was thrown");
}

TEST(Node, GpusThatOnlyTheProgramKnowsAreTakenWithAWarning) {
  EXPECT_THAT(check_gpus({0, 1}, {.gpus = 0}, std::nullopt),
              testing::HasSubstr("--gpus: no NVIDIA GPU is visible here"));
  EXPECT_EQ(check_gpus({0, 1}, {.gpus = 2}, std::nullopt), "");
  EXPECT_THAT(test::error_text<UsageError>([] { (void)check_gpus({5}, {.gpus = 0}, "6,7"); }),
              testing::HasSubstr("GPU 5 is hidden by CUDA_VISIBLE_DEVICES=6,7"));
}

class Gpus : public testing::Test {
 protected:
  Gpus()
      : root_(std::filesystem::temp_directory_path() /
              ("argosy-gpus-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(root_ / "dev");
    std::filesystem::create_directories(root_ / "proc");
  }
  ~Gpus() override { std::filesystem::remove_all(root_); }

  int count(const std::optional<std::string>& visible = std::nullopt) const {
    return count_gpus(root_ / "dev", root_ / "proc", visible);
  }
  std::filesystem::path root_;
};

TEST_F(Gpus, AreCountedByDeviceFiles) {
  EXPECT_EQ(count(), 0);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia"}) {
    std::ofstream(root_ / "dev" / name) << "";
  }
  EXPECT_EQ(count(), 3);
  EXPECT_EQ(count("0,2"), 2);
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("-1"), 0);
  EXPECT_EQ(count("1,-1,0"), 1);  // CUDA stops at the first invalid one
  EXPECT_EQ(count("GPU-5ab3, GPU-77"), 2);
}

TEST_F(Gpus, OrByTheDriversEntries) {
  std::filesystem::create_directories(root_ / "proc" / "0000:01:00.0");
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(count_gpus("/nowhere", "/nowhere", std::nullopt), 0);
}

TEST(ThisNode, HasACore) {
  EXPECT_GE(this_node().cores, 1);
}

}  // namespace
}  // namespace argosy::launch
