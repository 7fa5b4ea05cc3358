#include "argosy/download/folder_lock.h"

#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::download {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(FolderLock, WhoWaitsSaysForWhomAndGetsItWhenTheOtherIsDone) {
  const test::TempDir folder;
  auto first = std::make_unique<FolderLock>(folder.path().string(), 1min);
  testing::internal::CaptureStderr();
  auto second =
      std::async(std::launch::async, [&] { const FolderLock lock(folder.path().string(), 1min); });
  EXPECT_EQ(second.wait_for(100ms), std::future_status::timeout);
  first.reset();
  second.get();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("process " + std::to_string(::getpid()) + " on "));
}

TEST(FolderLock, GivesUpWhenNothingComes) {
  const test::TempDir folder;
  const FolderLock first(folder.path().string(), 1min);
  EXPECT_THAT(
      test::error_text<DataError>([&] { const FolderLock lock(folder.path().string(), 60ms); }),
      testing::AllOf(HasSubstr("[download.lock] " + folder.path().string()),
                     HasSubstr("holds the lock, and nothing has come for")));
}

TEST(FolderLock, WaitsAsLongAsSomethingComes) {
  const test::TempDir folder;
  auto first = std::make_unique<FolderLock>(folder.path().string(), 1min);
  std::thread growing([&] {
    std::ofstream part(folder.path() / "data.part");
    for (int i = 0; i < 20; ++i) {
      part << i << std::flush;
      std::this_thread::sleep_for(50ms);  // what is fetched slowly
    }
    first.reset();
  });
  EXPECT_NO_THROW(FolderLock(folder.path().string(), 500ms));
  growing.join();
}

}  // namespace
}  // namespace argosy::download
