// Workers as processes of their own, which die.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/rpc/rpc.h"

#include "tests/support/owned_port.h"
#include "tests/support/run_ranks.h"

namespace argosy::rpc {
namespace {

using namespace std::chrono_literals;
using test::RankMode;
using test::RankOutcome;
using ::testing::AllOf;
using ::testing::HasSubstr;

const test::RankOptions kProcesses{.mode = RankMode::kProcesses, .deadline = 60s};

/// Functions that every worker serves.
void serve_all() {
  serve("add", [](double a, double b) { return a + b; });
  serve("die", [](int how) {
    ::raise(how);
    std::this_thread::sleep_for(1h);
  });
  serve("length", [](const Memory& memory) { return memory.size(); });
  serve("pid", [] { return ::getpid(); });
}

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before any thread
}

/// Joins as the environment says, as under a launcher.
void join(int rank, int size, const test::OwnedPort& port, const AgentOptions& options = {}) {
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(size));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(port.port()));
  set("ARGOSY_TOKEN", "a1b2c3d4e5f60718");
  serve_all();
  init_rpc("w" + std::to_string(rank), options);
}

CallError error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CallError& error) {
    return error;
  }
  throw std::logic_error("the call succeeded");
}

TEST(RpcProcesses, CallEachOtherAndLeaveTogether) {
  const test::OwnedPort port;
  test::run_ranks(
      3,
      [&](int rank) {
        join(rank, 3, port);
        EXPECT_EQ(rpc_sync<double>((rank + 1) % 3, "add", rank, 0.5), rank + 0.5);
        EXPECT_EQ(rpc_async<double>("w0", "add", 1, 2).wait(), 3);
        EXPECT_EQ(get_worker_info("w2").rank, 2);
        EXPECT_EQ(get_current_worker_info().name, "w" + std::to_string(rank));
        EXPECT_EQ(get_all_worker_infos().size(), 3U);
        const std::vector<std::byte> bytes(3 << 20);
        EXPECT_EQ(rpc_sync<size_t>((rank + 2) % 3, "length", Memory::view(bytes)), bytes.size());
        shutdown();
        EXPECT_THROW((void)agent(), UsageError);
      },
      kProcesses);
}

/// Stops a process. Returns when none of its threads runs any more.
void stop(pid_t process) {
  ::kill(process, SIGSTOP);
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (bool running = true; running;) {
    running = false;
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      const std::string stat = os::read_file(task.path() / "stat").or_throw<Error>("test");
      running = running || stat.at(stat.rfind(')') + 2) != 'T';
    }
  }
}

/// Whether calls go through the network stack, as to another host, or through a lane.
class Ways : public ::testing::TestWithParam<bool> {
 protected:
  static void join(int rank, int size, const test::OwnedPort& port) {
    rpc::join(rank, size, port, {.shared_memory_bytes = GetParam() ? size_t{1} << 30 : 0});
  }
  static void open_lane(int to) { EXPECT_EQ(rpc_sync<double>(to, "add", 1, 2), 3); }
};
INSTANTIATE_TEST_SUITE_P(Rpc, Ways, ::testing::Bool(), [](const auto& info) {
  return info.param ? "Lane" : "Network";
});

TEST_P(Ways, AWorkerThatDiesIsNamedAndNobodyWaitsForIt) {
  const test::OwnedPort port;
  const std::vector<RankOutcome> outcomes = test::try_run_ranks(
      3,
      [&](int rank) {
        join(rank, 3, port);
        if (rank == 0) {
          open_lane(2);
          const auto start = std::chrono::steady_clock::now();
          const CallError during = error_of([&] { rpc_sync("w2", "die", SIGKILL); });
          EXPECT_EQ(during.outcome(), CallOutcome::kUnknown);
          EXPECT_EQ(during.peers(), std::vector<int>{2});
          EXPECT_THAT(during.what(),
                      AllOf(HasSubstr("worker \"w2\" (rank 2, "),
                            HasSubstr("it died (its process ended without leaving the job"),
                            HasSubstr("Whether the function ran is not known.")));
          const CallError after = error_of([&] { (void)rpc_sync<double>("w2", "add", 1, 2); });
          EXPECT_EQ(after.outcome(), CallOutcome::kRefused);
          EXPECT_THAT(after.what(), HasSubstr("The function did not run."));
          EXPECT_EQ(rpc_sync<double>("w1", "add", 1, 2), 3);
          EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
        }
        shutdown();
      },
      kProcesses);
  EXPECT_TRUE(outcomes[0].ok()) << test::describe(outcomes[0]);
  EXPECT_TRUE(outcomes[1].ok()) << test::describe(outcomes[1]);
  EXPECT_EQ(outcomes[2].signal, SIGKILL);
}

TEST_P(Ways, ACallThatADeadWorkerHadNotReadDidNotRun) {
  const test::OwnedPort port;
  const std::vector<RankOutcome> outcomes = test::try_run_ranks(
      2,
      [&](int rank) {
        join(rank, 2, port);
        if (rank == 0) {
          open_lane(1);
          const pid_t other = rpc_sync<pid_t>(1, "pid");
          stop(other);
          const Future<double> call = rpc_async<double>(1, "add", 1, 2);
          ::kill(other, SIGKILL);
          const CallError error = error_of([&] { (void)call.wait(); });
          EXPECT_EQ(error.outcome(), GetParam() ? CallOutcome::kRefused : CallOutcome::kUnknown);
          EXPECT_THAT(error.what(), HasSubstr("it died"));
        }
        shutdown();
      },
      kProcesses);
  EXPECT_TRUE(outcomes[0].ok()) << test::describe(outcomes[0]);
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
}

TEST_P(Ways, TheWorkerThatHostsTheStoreDiesToo) {
  const test::OwnedPort port;
  const std::vector<RankOutcome> outcomes = test::try_run_ranks(
      2,
      [&](int rank) {
        join(rank, 2, port);
        if (rank == 1) {
          open_lane(0);
          const CallError error = error_of([&] { rpc_sync("w0", "die", SIGKILL); });
          EXPECT_THAT(error.what(), HasSubstr("worker \"w0\""));
          std::_Exit(7);  // there is no store to say goodbye to
        }
        shutdown();
      },
      kProcesses);
  EXPECT_EQ(outcomes[0].signal, SIGKILL);
  EXPECT_EQ(outcomes[1].exit_code, 7) << test::describe(outcomes[1]);
}

TEST_P(Ways, AnEndWithoutShutdownIsAGoodbye) {
  const test::OwnedPort port;
  const std::vector<RankOutcome> outcomes = test::try_run_ranks(
      2,
      [&](int rank) {
        join(rank, 2, port);
        if (rank == 1) {
          std::exit(0);  // NOLINT(concurrency-mt-unsafe): as a program ends that forgets it
        }
        for (;;) {
          try {
            (void)rpc_sync<double>("w1", "add", 1, 2);
          } catch (const CallError& error) {
            EXPECT_THAT(error.what(),
                        ::testing::AnyOf(HasSubstr("it has left the job"),
                                         HasSubstr("it left the job while the call ran")));
            break;
          }
        }
        shutdown();
      },
      kProcesses);
  EXPECT_TRUE(outcomes[0].ok()) << test::describe(outcomes[0]);
  EXPECT_EQ(outcomes[1].exit_code, 0);
  EXPECT_EQ(outcomes[1].signal, 0) << test::describe(outcomes[1]);
}

TEST_P(Ways, AForkedChildThatEndsDoesNotLeaveForItsParent) {
  const test::OwnedPort port;
  test::run_ranks(
      2,
      [&](int rank) {
        join(rank, 2, port);
        open_lane(1 - rank);
        const pid_t child = ::fork();
        if (child == 0) {
          std::exit(0);  // NOLINT(concurrency-mt-unsafe): with what is registered for it
        }
        int status = -1;
        const Deadline deadline = Deadline::after(20s);
        while (::waitpid(child, &status, WNOHANG) == 0 && !deadline.expired()) {
          std::this_thread::sleep_for(10ms);
        }
        EXPECT_FALSE(deadline.expired()) << "the child waits for threads of its parent";
        ::kill(child, SIGKILL);
        EXPECT_EQ(rpc_sync<double>(1 - rank, "add", 1, 2), 3);
        shutdown();
      },
      kProcesses);
}

TEST(RpcProcesses, SpeakTls) {
  const test::OwnedPort port;
  test::run_ranks(
      2,
      [&](int rank) {
        set("ARGOSY_TLS", "1");
        join(rank, 2, port);
        EXPECT_EQ(rpc_sync<double>(1 - rank, "add", 1, 2), 3);
        shutdown();
      },
      kProcesses);
}

TEST(RpcProcesses, WhoHasAnotherTokenIsRefused) {
  const test::OwnedPort port;
  const std::vector<RankOutcome> outcomes = test::try_run_ranks(
      2,
      [&](int rank) {
        set("ARGOSY_TOKEN", rank == 0 ? "a1b2c3d4e5f60718" : "wrong wrong wrong");
        serve_all();
        init_rpc("w" + std::to_string(rank),
                 {.rank = rank,
                  .world_size = 2,
                  .master_endpoint = "127.0.0.1:" + std::to_string(port.port()),
                  .join_timeout = 3s});
      },
      kProcesses);
  EXPECT_EQ(outcomes[1].error_type, "argosy::RefusedError") << test::describe(outcomes[1]);
}

}  // namespace
}  // namespace argosy::rpc
