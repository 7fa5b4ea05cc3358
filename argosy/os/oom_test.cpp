#include "argosy/os/oom.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>

namespace argosy::os {
namespace {

TEST(OomKills, AreTheKernelsCount) {
  const std::string path = "oom_test." + std::to_string(::getpid());
  std::ofstream(path) << "nr_free_pages 12345\noom_kill 7\nother 1\n";
  EXPECT_EQ(oom_kills(path), 7);
  std::ofstream(path) << "nr_free_pages 12345\n";
  EXPECT_EQ(oom_kills(path), std::nullopt);
  std::remove(path.c_str());
  EXPECT_EQ(oom_kills(path), std::nullopt);
}

}  // namespace
}  // namespace argosy::os
