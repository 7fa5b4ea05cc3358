#include "argosy/os/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace argosy::os {
namespace {

TEST(Cpu, ListsOfTheKernel) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
  for (const char* bad : {"a", "3-1", "1,", "-1", "1-", "0-99999999999"}) {
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
  }
}

TEST(Cpu, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const Cpu all = usable_cpu();
  EXPECT_GE(all.cores, 1);
  EXPECT_LE(all.cores, CPU_COUNT(&before));
  EXPECT_GE(all.physical_cores, 1);
  EXPECT_LE(all.physical_cores, CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const Cpu narrow = usable_cpu();
  ::sched_setaffinity(0, sizeof before, &before);
  EXPECT_EQ(narrow.cores, 1);
  EXPECT_EQ(narrow.physical_cores, 1);
}

/// A made-up /sys/fs/cgroup.
class Cgroup : public testing::Test {
 protected:
  Cgroup()
      : root_(std::filesystem::temp_directory_path() /
              ("argosy-cgroup-" + std::to_string(::getpid()))) {}
  ~Cgroup() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(Cgroup, Version2TakesTheSmallestOfItselfAndItsParents) {
  write("cpu.max", "max 100000\n");
  write("job/cpu.max", "150000 100000\n");
  write("job/step/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit("0::/job/step\n", root_), 1.5);
  EXPECT_EQ(cgroup_cpu_limit("0::/\n", root_), std::nullopt);
  write("cpu.max", "50000 100000\n");  // a container's own root
  EXPECT_EQ(cgroup_cpu_limit("0::/\n", root_), 0.5);
}

TEST_F(Cgroup, Version1) {
  write("cpu,cpuacct/box/cpu.cfs_quota_us", "250000\n");
  write("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  const std::string membership = "9:memory:/box\n4:cpu,cpuacct:/box\n3:cpuset:/box\n0::/\n";
  EXPECT_EQ(cgroup_cpu_limit(membership, root_), 2.5);
  write("cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cgroup_cpu_limit(membership, root_), std::nullopt);
}

TEST_F(Cgroup, NoFilesMeanNoLimit) {
  EXPECT_EQ(cgroup_cpu_limit("0::/somewhere\n", root_), std::nullopt);
  EXPECT_EQ(cgroup_cpu_limit("", root_), std::nullopt);
}

}  // namespace
}  // namespace argosy::os
