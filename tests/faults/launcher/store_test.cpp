// Ranks that meet in the launcher's store, and which of them is named when all of them fail.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/base/strings.h"
#include "argosy/os/fd.h"
#include "argosy/os/socket.h"

#include "launched.h"

namespace argosy::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

bool wait_for_state(int pid, char state) {
  const Deadline deadline = Deadline::after(30s);
  while (state_of(pid) != state && !deadline.expired()) {
    std::this_thread::sleep_for(1ms);  // a stranger's state has no event to wait for
  }
  return state_of(pid) == state;
}

TEST(LauncherStore, TheFirstToDieIsNamedHoweverLateTheLauncherLooks) {
  Launched job({.args = {"--nproc_per_node=5", RANK_PROGRAM}});
  ASSERT_TRUE(job.wait_for_output("joined 5 ranks", 5));
  std::vector<int> pids;
  for (int rank = 0; rank < 5; ++rank) {
    const std::string line = lines_of(job.out(), "[rank " + std::to_string(rank) + "] ").at(0);
    pids.push_back(static_cast<int>(*strings::parse_int(strings::split(line, ' ').at(1))));
  }
  // While the launcher sleeps, rank 3 fails and then the others: it wakes up to five dead ranks.
  job.signal(SIGSTOP);
  ASSERT_TRUE(wait_for_state(job.pid(), 'T'));
  for (const int rank : {3, 0, 1, 2, 4}) {
    const int pid = pids.at(static_cast<size_t>(rank));
    // Not the state Z of /proc: the main thread has it while others of the process still end.
    const os::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    ASSERT_EQ(::kill(pid, SIGUSR1), 0);
    ASSERT_TRUE(*os::wait_ready(process.get(), POLLIN, Deadline::after(30s))) << rank;
  }
  job.signal(SIGCONT);
  EXPECT_EQ(job.wait(), 7) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("[launch] rank 3 "));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherStore, OneNodeMayUseTlsToo) {
  Launched job({.args = {"--tls", "--nproc_per_node=2", RANK_PROGRAM}});
  EXPECT_TRUE(job.wait_for_output("joined 2 ranks", 2)) << job.err();
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  Launched bare(
      {.args = {"--tls", "sh", "-c", std::string("ARGOSY_TLS=0 exec timeout 2 ") + RANK_PROGRAM}});
  EXPECT_EQ(bare.wait(), 124);
}

TEST(LauncherStore, StrangersByTheThousandHarmNoJob) {
  // Half of them say nothing, the others what is not gRPC; then ranks with another token.
  Launched job(
      {.args = {"--nproc_per_node=2",
                "sh",
                "-c",
                std::string("[ $RANK = 1 ] && exec ") + RANK_PROGRAM +
                    "; for i in 1 2 3; do ARGOSY_TOKEN=guessed timeout 20 " + RANK_PROGRAM +
                    "; done; echo store $ARGOSY_STORE; read -r go; exec " + RANK_PROGRAM},
       .with_input = true});
  ASSERT_TRUE(job.wait_for_output("store 127.0.0.1:"));
  const std::string store = lines_of(job.out(), "[rank 0] store 127.0.0.1:").at(0);
  const auto port = static_cast<uint16_t>(*strings::parse_int(store));
  std::vector<os::UniqueFd> strangers;
  for (int i = 0; i < 1000; ++i) {
    auto stranger = os::connect_tcp("127.0.0.1", port, Deadline::after(20s));
    ASSERT_TRUE(stranger.ok()) << i;
    if (i % 2 == 0) {
      (void)os::write_all(stranger->get(), std::string(64, static_cast<char>(i)));
    }
    strangers.push_back(*std::move(stranger));
  }
  ASSERT_TRUE(os::write_all(job.input().get(), "go\n").ok());
  ASSERT_TRUE(job.wait_for_output("joined 2 ranks", 2)) << job.err();
  const std::string told = "refused a caller from 127.0.0.1: wrong job token";
  EXPECT_NE(job.all_err().find(told), std::string::npos) << job.all_err();
  EXPECT_EQ(job.all_err().find(told), job.all_err().rfind(told));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
}

TEST(LauncherStore, AStrangerWithoutTheTokenIsRefused) {
  Launched job({.args = {"sh", "-c", std::string("ARGOSY_TOKEN=guessed ") + RANK_PROGRAM}});
  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), HasSubstr("token"));
}

}  // namespace
}  // namespace argosy::test
