#include "argosy/os/futex.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <future>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/os/memory.h"

namespace argosy::os {
namespace {

using namespace std::chrono_literals;

TEST(Futex, AnotherValueIsNotWaitedFor) {
  const std::atomic<uint32_t> word{1};
  const auto start = Deadline::Clock::now();
  futex_wait(word, 0, 20s);
  EXPECT_LT(Deadline::Clock::now() - start, 10s);
}

TEST(Futex, TheTimeEndsTheWait) {
  const std::atomic<uint32_t> word{0};
  const auto start = Deadline::Clock::now();
  while (Deadline::Clock::now() - start < 30ms) {
    futex_wait(word, 0, 30ms);
  }
  EXPECT_EQ(word, 0U);
}

/// Until the kernel says that a thread sleeps, `stat` of which lies in /proc.
void await_sleep(const std::string& stat) {
  for (const Deadline deadline = Deadline::after(20s); !deadline.expired();) {
    std::string text;
    std::getline(std::ifstream(stat), text);
    const size_t name_ends = text.rfind(") ");
    if (name_ends != std::string::npos && text[name_ends + 2] == 'S') {
      return;
    }
    std::this_thread::yield();
  }
}

/// Waits for another value than 0; how long it took. A sleeper that nobody wakes takes 20 s.
Deadline::Clock::duration sleep_for_change(const std::atomic<uint32_t>& word) {
  const auto start = Deadline::Clock::now();
  while (word == 0) {
    futex_wait(word, 0, 20s);
  }
  return Deadline::Clock::now() - start;
}

TEST(Futex, AnotherThreadWakesAllThatSleep) {
  std::atomic<uint32_t> word{0};
  std::array<std::atomic<pid_t>, 2> sleepers{};
  std::vector<std::future<Deadline::Clock::duration>> waits;
  for (std::atomic<pid_t>& sleeper : sleepers) {
    waits.push_back(std::async(std::launch::async, [&] {
      sleeper = ::gettid();
      return sleep_for_change(word);
    }));
  }
  for (const std::atomic<pid_t>& sleeper : sleepers) {
    while (sleeper == 0) {
      std::this_thread::yield();
    }
    await_sleep("/proc/self/task/" + std::to_string(sleeper) + "/stat");
  }
  word = 1;
  futex_wake_all(word);
  for (auto& wait : waits) {
    EXPECT_LT(wait.get(), 10s);
  }
}

TEST(Futex, AnotherProcessWakes) {
  const SharedMemory memory = *SharedMemory::create("futex", sizeof(std::atomic<uint32_t>));
  auto& word = *new (memory.bytes().data()) std::atomic<uint32_t>(0);
  const pid_t sleeper = ::gettid();
  const pid_t child = ::fork();
  if (child == 0) {
    await_sleep("/proc/" + std::to_string(sleeper) + "/stat");
    word = 7;
    futex_wake_all(word);
    ::_exit(0);
  }
  EXPECT_LT(sleep_for_change(word), 10s);
  EXPECT_EQ(word, 7U);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace argosy::os
