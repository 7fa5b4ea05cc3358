#include "argosy/base/log.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::log {
namespace {

using testing::MatchesRegex;

std::string line_as(const char* identity) {
  testing::internal::CaptureStderr();
  set_identity(identity);
  error("no {}", "folder");
  return testing::internal::GetCapturedStderr();
}

TEST(Log, DoesNotRepeatTheRankThatTheLauncherPutsBeforeEachLine) {
  // Read at the first line. NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  ::setenv("ARGOSY_LINE_PREFIX", "rank 3", 1);
  EXPECT_THAT(line_as("rank 3"), MatchesRegex("..:..:..\\.... error no folder\n"));
  EXPECT_THAT(line_as("rank 4"), MatchesRegex("..:..:..\\.... error \\[rank 4\\] no folder\n"));
  EXPECT_THAT(line_as(""), MatchesRegex("..:..:..\\.... error no folder\n"));
}

}  // namespace
}  // namespace argosy::log
