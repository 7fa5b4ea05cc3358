#include "argosy/launch/adopted.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

const Adopted::Others kNobody = [](pid_t) { return false; };

[[noreturn]] void wait_for_ever() {
  while (true) {
    ::pause();
  }
}

/// A child that waits for ever; kills and reaps it at the end where nobody else has.
class Child {
 public:
  /// `wanted`: the number that it shall have; 0: any.
  explicit Child(pid_t wanted = 0) {
    if (wanted == 0) {
      pid_ = ::fork();
    } else {
      clone_args args{};
      args.exit_signal = SIGCHLD;
      args.set_tid = reinterpret_cast<uint64_t>(&wanted);
      args.set_tid_size = 1;
      pid_ = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
      error_ = pid_ < 0 ? errno : 0;
    }
    if (pid_ == 0) {
      wait_for_ever();
    }
  }
  ~Child() {
    if (is_ours()) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child(Child&&) = delete;
  Child& operator=(Child&&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool started() const { return pid_ > 0; }
  [[nodiscard]] int error() const { return error_; }
  /// Running, or a zombie. Never true of a number that kill() takes for a group or for everybody.
  [[nodiscard]] bool is_ours() const {
    siginfo_t info{};
    return pid_ > 1 && ::waitid(P_PID, static_cast<id_t>(pid_), &info, kLook | WNOHANG) == 0;
  }
  /// Waits until it is a zombie; the signal that made it one.
  [[nodiscard]] int ended_by() const {
    siginfo_t info{};
    return is_ours() && ::waitid(P_PID, static_cast<id_t>(pid_), &info, kLook) == 0 ? info.si_status
                                                                                    : -1;
  }
  void kill() const {
    if (is_ours()) {
      ::kill(pid_, SIGKILL);
    }
  }

 private:
  static constexpr int kLook = WEXITED | WNOWAIT;
  pid_t pid_ = -1;
  int error_ = 0;
};

TEST(Adopted, AStrangerIsLeftAloneButReaped) {
  const Child stranger;
  ASSERT_TRUE(stranger.started());
  Adopted adopted;
  EXPECT_FALSE(adopted.alive(kNobody));
  const Child child;
  ASSERT_TRUE(child.started());
  EXPECT_TRUE(adopted.alive(kNobody));
  EXPECT_FALSE(adopted.alive([&](pid_t pid) { return pid == child.pid(); }));

  adopted.signal(SIGTERM, kNobody);
  EXPECT_EQ(child.ended_by(), SIGTERM);
  adopted.reap(kNobody);
  EXPECT_FALSE(child.is_ours());
  EXPECT_FALSE(adopted.alive(kNobody));

  stranger.kill();
  EXPECT_EQ(stranger.ended_by(), SIGKILL);  // had it got our SIGTERM, that
  adopted.reap(kNobody);
  EXPECT_FALSE(stranger.is_ours());
}

TEST(Adopted, ANumberThatComesAgainIsNoStrangersAnyMore) {
  const Child stranger;
  ASSERT_TRUE(stranger.started());
  Adopted adopted;
  stranger.kill();
  ASSERT_EQ(stranger.ended_by(), SIGKILL);
  adopted.reap(kNobody);
  const Child child(stranger.pid());
  if (!child.started()) {
    GTEST_SKIP() << "no number may be chosen here: errno " << child.error();
  }
  EXPECT_EQ(child.pid(), stranger.pid());
  EXPECT_TRUE(adopted.alive(kNobody));
}

}  // namespace
}  // namespace argosy::launch
