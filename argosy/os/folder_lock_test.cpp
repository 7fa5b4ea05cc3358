#include "argosy/os/folder_lock.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/addresses.h"

#include "tests/support/temp_dir.h"

namespace argosy::os {
namespace {

using namespace std::chrono_literals;
using testing::StartsWith;

/// By a file that names its holder, and the folder itself.
class FolderLock : public testing::TestWithParam<const char*> {
 protected:
  Result<UniqueFd> lock(FolderLockOptions options = {}) const {
    options.file = GetParam();
    return lock_folder(folder_.path().string(), options);
  }
  const test::TempDir folder_;
  const std::string self_ = *GetParam() == '\0'
                                ? fmt::format("process {} (", ::getpid())
                                : fmt::format("process {} on {}", ::getpid(), host_name());
};

TEST_P(FolderLock, NamesItsHolderToWhoeverComesSecond) {
  auto first = lock();
  ASSERT_TRUE(first.ok());
  const auto second = lock();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.failure().error_number, EWOULDBLOCK);
  EXPECT_THAT(second.failure().what, StartsWith(self_));
  (*first).close();
  EXPECT_TRUE(lock().ok());
}

TEST_P(FolderLock, WhoWaitsSaysForWhomAndGetsItWhenTheOtherIsDone) {
  auto first = lock();
  std::promise<std::string> waits_for;
  auto second = std::async(std::launch::async, [&] {
    return lock({.patience = 1min,
                 .on_wait =
                     [&](const std::string& holder) {
                       waits_for.set_value(holder);  // once: a second time would throw
                     }})
        .ok();
  });
  EXPECT_THAT(waits_for.get_future().get(), StartsWith(self_));
  EXPECT_EQ(second.wait_for(0ms), std::future_status::timeout);
  (*first).close();
  EXPECT_TRUE(second.get());
}

TEST_P(FolderLock, IsWaitedForAsLongAsTheFolderGrows) {
  auto first = lock();
  std::jthread growing([&] {
    std::ofstream part(folder_.path() / "data.part");
    for (int i = 0; i < 16; ++i) {
      part << i << std::flush;
      std::this_thread::sleep_for(50ms);  // what comes slowly
    }
    (*first).close();
  });
  EXPECT_EQ(lock({.patience = 100ms}).failure().error_number, EWOULDBLOCK);
  EXPECT_TRUE(lock({.patience = 500ms, .while_it_grows = true}).ok());
}

TEST_P(FolderLock, AFolderThatIsNotThereIsAnError) {
  const auto none = lock_folder((folder_.path() / "no").string(), {.file = GetParam()});
  EXPECT_EQ(none.failure().error_number, ENOENT);
}

INSTANTIATE_TEST_SUITE_P(BothWays, FolderLock, testing::Values(".lock", ""));

}  // namespace
}  // namespace argosy::os
