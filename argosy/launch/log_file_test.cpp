#include "argosy/launch/log_file.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace argosy::launch {
namespace {

std::string content(const std::string& path) {
  return *os::read_file(path);
}

TEST(LogFile, AppendsOrStartsEmpty) {
  const test::TempDir folder;
  const std::string path = (folder.path() / "sub" / "workerlog.0").string();
  EXPECT_EQ(LogFile(path, LogFile::Start::kAtTheEnd).write("one\n"), "");
  LogFile more(path, LogFile::Start::kAtTheEnd);
  EXPECT_EQ(more.path(), "");
  EXPECT_EQ(more.write("two\n"), "");
  EXPECT_EQ(more.path(), path);
  EXPECT_EQ(content(path), "one\ntwo\n");
  LogFile again(path, LogFile::Start::kEmpty);
  EXPECT_FALSE(std::filesystem::exists(path));  // also of a rank that prints nothing
  EXPECT_EQ(again.write("three\n"), "");
  EXPECT_EQ(content(path), "three\n");
}

TEST(LogFile, SaysOnceWhyItIsNotWritten) {
  LogFile file("/proc/nowhere/rank0.log", LogFile::Start::kEmpty);
  EXPECT_THAT(file.write("x"), testing::HasSubstr("/proc/nowhere/rank0.log is not written: "));
  EXPECT_EQ(file.write("y"), "");
}

}  // namespace
}  // namespace argosy::launch
