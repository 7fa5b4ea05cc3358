#include "argosy/datasets/folder_lock.h"

#include <unistd.h>

#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Standard error as a pipe, as long as this lives.
class StderrPipe {
 public:
  StderrPipe() : pipe_(*os::make_pipe()), saved_(::dup(STDERR_FILENO)) {
    ::dup2(pipe_.write.get(), STDERR_FILENO);
  }
  ~StderrPipe() { ::dup2(saved_.get(), STDERR_FILENO); }
  StderrPipe(const StderrPipe&) = delete;
  StderrPipe& operator=(const StderrPipe&) = delete;

  /// Waits for a line.
  std::string line() {
    std::string text;
    char next = 0;
    while (next != '\n' && ::read(pipe_.read.get(), &next, 1) == 1) {
      text += next;
    }
    return text;
  }

 private:
  os::Pipe pipe_;
  os::UniqueFd saved_;
};

TEST(FolderLock, WhoWaitsSaysForWhomAndGetsItWhenTheOtherIsDone) {
  const test::TempDir folder;
  auto first = std::make_unique<FolderLock>(folder.path().string(), 1min);
  StderrPipe errors;
  auto second =
      std::async(std::launch::async, [&] { const FolderLock lock(folder.path().string(), 1min); });
  EXPECT_THAT(errors.line(), HasSubstr("process " + std::to_string(::getpid()) + " on "));
  EXPECT_EQ(second.wait_for(0ms), std::future_status::timeout);
  first.reset();
  second.get();
}

TEST(FolderLock, GivesUpWhenNothingComes) {
  const test::TempDir folder;
  const FolderLock first(folder.path().string(), 1min);
  EXPECT_THAT(
      test::error_text<DataError>([&] { const FolderLock lock(folder.path().string(), 60ms); }),
      testing::AllOf(HasSubstr("[datasets.lock] " + folder.path().string()),
                     HasSubstr("holds the lock, and nothing has come for")));
}

TEST(FolderLock, WaitsAsLongAsSomethingComes) {
  const test::TempDir folder;
  auto first = std::make_unique<FolderLock>(folder.path().string(), 1min);
  std::thread growing([&] {
    std::ofstream part(folder.path() / "data.part");
    for (int i = 0; i < 40; ++i) {
      part << i << std::flush;
      std::this_thread::sleep_for(50ms);  // what is fetched slowly
    }
    first.reset();
  });
  EXPECT_NO_THROW(FolderLock(folder.path().string(), 1s));
  growing.join();
}

}  // namespace
}  // namespace argosy::datasets
