#include "apps/doctor/host.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "argosy/base/text.h"

#include "tests/support/temp_dir.h"

namespace argosy::doctor {
namespace {

TEST(Meminfo, IsReadByName) {
  const std::string text =
      "MemTotal:       24610404 kB\nMemAvailable:   5 kB\nHugePages_Total: 0\n";
  EXPECT_EQ(meminfo(text, "MemTotal"), int64_t{24610404} * 1024);
  EXPECT_EQ(meminfo(text, "MemAvailable"), 5120);
  EXPECT_FALSE(meminfo(text, "MemFree"));
  EXPECT_FALSE(meminfo(text, "HugePages_Total"));
  EXPECT_FALSE(meminfo("MemTotal: x kB\n", "MemTotal"));
}

TEST(CgroupMemory, IsTheLeastOfAllParents) {
  const test::TempDir mount;
  std::filesystem::create_directories(mount.path() / "a" / "b");
  std::ofstream(mount.path() / "a" / "b" / "memory.max") << "max\n";
  EXPECT_FALSE(cgroup_memory_limit("0::/a/b\n", mount.path().string()));
  std::ofstream(mount.path() / "a" / "memory.max") << "1048576\n";
  EXPECT_EQ(cgroup_memory_limit("0::/a/b\n", mount.path().string()), 1 << 20);
  std::ofstream(mount.path() / "a" / "b" / "memory.max") << "4096\n";
  EXPECT_EQ(cgroup_memory_limit("1:name=x:/\n0::/a/b\n", mount.path().string()), 4096);
  EXPECT_FALSE(cgroup_memory_limit("", mount.path().string()));
}

TEST(HostFindings, OfThisMachineAreTrue) {
  const std::vector<Finding> findings = host_findings();
  const auto of = [&](const std::string& subject) {
    const auto found = std::ranges::find(findings, subject, &Finding::subject);
    return found == findings.end() ? Finding{.text = "missing"} : *found;
  };
  EXPECT_EQ(of("shared memory").text, "works");
  EXPECT_EQ(of("supervision").verdict, Finding::Verdict::kFine);
  EXPECT_NE(of("system").text.find("Linux"), std::string::npos);
  EXPECT_TRUE(all_well(findings)) << render(findings);
}

}  // namespace
}  // namespace argosy::doctor
