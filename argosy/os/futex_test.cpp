#include "argosy/os/futex.h"

#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <thread>

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

TEST(Futex, AnotherThreadWakes) {
  std::atomic<uint32_t> word{0};
  std::thread other([&] {
    word = 1;
    futex_wake_all(word);
  });
  while (word == 0) {
    futex_wait(word, 0, 20s);
  }
  other.join();
}

TEST(Futex, AnotherProcessWakes) {
  const SharedMemory memory = *SharedMemory::create("futex", sizeof(std::atomic<uint32_t>));
  auto& word = *new (memory.bytes().data()) std::atomic<uint32_t>(0);
  const pid_t child = ::fork();
  if (child == 0) {
    word = 7;
    futex_wake_all(word);
    ::_exit(0);
  }
  const Deadline deadline = Deadline::after(20s);
  while (word == 0 && !deadline.expired()) {
    futex_wait(word, 0, deadline.remaining());
  }
  EXPECT_EQ(word, 7U);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace argosy::os
