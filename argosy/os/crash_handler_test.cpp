#include "argosy/os/crash_handler.h"

#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"

#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::os {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

bool under_sanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

class CrashHandler : public testing::Test {
 protected:
  void SetUp() override {
    if (under_sanitizer()) {
      GTEST_SKIP() << "the sanitizer handles these signals itself";
    }
    ::setenv("TORCHELASTIC_ERROR_FILE", file_.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("TORCHELASTIC_ERROR_FILE"); }
  [[nodiscard]] json written() const {
    const Result<std::string> text = read_file(file_);
    return text.ok() ? json::parse(*text).at("message") : json("no file");
  }

  test::TempDir dir_;
  std::string file_ = dir_.path() / "error.json";
};

[[gnu::noinline]] void write_to_a_closed_page() {
  void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile int*>(page) = 1;
}

[[gnu::noinline]] int overflow_the_stack(int depth) {
  std::array<volatile char, 4096> room{};
  room[static_cast<size_t>(depth % 4096)] = 1;
  return depth < 0 ? 0 : overflow_the_stack(depth + 1) + room[0];
}

template <typename E>
void throw_it(const E& error) {
  throw error;
}

TEST_F(CrashHandler, ASegfaultNamesTheFunction) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        write_to_a_closed_page();
      },
      testing::KilledBySignal(SIGSEGV),
      AllOf(HasSubstr("*** SIGSEGV at address 0x"), HasSubstr("write_to_a_closed_page")));
  const json message = written();
  EXPECT_THAT(message["message"], HasSubstr("SIGSEGV at address 0x"));
  EXPECT_THAT(message["message"], Not(HasSubstr("*")));
  EXPECT_THAT(message["extraInfo"]["py_callstack"], HasSubstr("write_to_a_closed_page"));
  EXPECT_GT(std::stoll(message["extraInfo"]["timestamp"].get<std::string>()), 1'700'000'000);
}

TEST_F(CrashHandler, AStackThatOverflowsIsTold) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        overflow_the_stack(0);
      },
      testing::KilledBySignal(SIGSEGV),
      HasSubstr("overflow_the_stack"));
}

TEST_F(CrashHandler, ThreadsThatCrashTogetherLeaveOneWholeStory) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        std::latch together(4);
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) {
          threads.emplace_back([&] {
            together.arrive_and_wait();
            write_to_a_closed_page();
          });
        }
        threads.front().join();
      },
      testing::KilledBySignal(SIGSEGV),
      HasSubstr("write_to_a_closed_page"));
  EXPECT_THAT(written()["extraInfo"]["py_callstack"], HasSubstr("write_to_a_closed_page"));
}

TEST_F(CrashHandler, WhatIsNotUtf8IsReplaced) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        []() noexcept {
          throw_it(
              std::runtime_error("Gr\xfc\xdf"
                                 "e, Gr\u00fc\u00dfe \xe2\x82"));
        }();
      },
      testing::KilledBySignal(SIGABRT),
      "");
  EXPECT_EQ(written()["message"], "std::runtime_error: Gr??e, Gr\u00fc\u00dfe ??");
}

TEST_F(CrashHandler, ASignalFromOutsideNamesItsSender) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        const std::string command = "kill -SEGV " + std::to_string(::getpid());
        (void)std::system(command.c_str());
        ::pause();
      },
      testing::KilledBySignal(SIGSEGV),
      HasSubstr("SIGSEGV from process "));
}

bool is_pending(int signal) {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, signal) == 1;
}

[[gnu::noinline]] void let_it_come(const sigset_t& abort) {
  while (!is_pending(SIGABRT)) {  // until the other thread has handed it on
    ::usleep(1000);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &abort, nullptr);
  ::usleep(1000);
}

TEST_F(CrashHandler, ASignalFromOutsideShowsTheMainThread) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        sigset_t abort;  // so that another thread than the main one gets it
        ::sigemptyset(&abort);
        ::sigaddset(&abort, SIGABRT);
        std::thread([] { ::pause(); }).detach();
        ::pthread_sigmask(SIG_BLOCK, &abort, nullptr);
        const std::string command = "kill -ABRT " + std::to_string(::getpid());
        (void)std::system(command.c_str());
        let_it_come(abort);
      },
      testing::KilledBySignal(SIGABRT),
      HasSubstr("let_it_come"));
}

TEST_F(CrashHandler, AnExceptionThatNobodyCatchesIsToldWithItsTypeAndPlace) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        []() noexcept { throw_it(std::runtime_error("a \"quoted\"\nlong story\\")); }();
      },
      testing::KilledBySignal(SIGABRT),
      AllOf(HasSubstr("long story"), HasSubstr("*** SIGABRT ***")));
  const json message = written();
  EXPECT_EQ(message["message"], "std::runtime_error: a \"quoted\"\nlong story\\");
  EXPECT_THAT(message["extraInfo"]["py_callstack"], HasSubstr("abort"));
}

TEST_F(CrashHandler, OurOwnErrorsComeWithoutAStack) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        []() noexcept { throw_it(ConfigError("room.op", "a typo")); }();
      },
      testing::KilledBySignal(SIGABRT),
      AllOf(HasSubstr("error: [room.op] a typo\nerror: see docs/guides/errors.md#room.op\n"),
            Not(HasSubstr("*** SIGABRT ***"))));
  EXPECT_EQ(written()["message"], "argosy::ConfigError: [room.op] a typo");
  EXPECT_EQ(written()["extraInfo"]["py_callstack"], "argosy::ConfigError: [room.op] a typo\n");
}

TEST_F(CrashHandler, ATextOfAnyLengthIsCut) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        []() noexcept { throw_it(std::runtime_error(std::string(1 << 20, '\1'))); }();
      },
      testing::KilledBySignal(SIGABRT),
      HasSubstr("*** SIGABRT ***"));
  EXPECT_EQ(written()["message"].get<std::string>().size(), 2048);
}

TEST_F(CrashHandler, SigtermAndTheHandlersOfOthersAreLeftAlone) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM),
      Not(HasSubstr("***")));
  EXPECT_EXIT(
      {
        ::signal(SIGSEGV, [](int) { ::_exit(7); });
        install_crash_handler();
        write_to_a_closed_page();
      },
      testing::ExitedWithCode(7),
      "");
  EXPECT_EXIT(
      {
        ::setenv("ARGOSY_CRASH_HANDLER", "0", 1);
        install_crash_handler();
        write_to_a_closed_page();
      },
      testing::KilledBySignal(SIGSEGV),
      Not(HasSubstr("***")));
  EXPECT_EQ(written(), "no file");
}

}  // namespace
}  // namespace argosy::os
