// Servers that die, as processes of their own.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/os/memory.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/table_saver.h"
#include "argosy/ps/table_server.h"
#include "argosy/ps/test_held.h"
#include "argosy/ps/views.h"
#include "argosy/rendezvous/test_store_host.h"

#include "tests/support/owned_port.h"
#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

using namespace std::chrono_literals;
using test::RankOutcome;

constexpr int kSteps = 150;

/// In memory that the processes share.
struct Result : Held {
  std::array<double, 2> longest_step_ms;
  bool saved;  ///< the last checkpoint
};

struct Death {
  int server = -1;
  int step = 0;      ///< of worker 0
  int after_us = 0;  ///< from the middle of that step
  int how = SIGKILL;
  bool when_safe = false;  ///< not before each partition has two copies
};

class DyingServers : public ::testing::Test {
 protected:
  struct Plan {
    int servers = 2;
    int workers = 2;
    UpdateMode mode = UpdateMode::kSync;
    uint64_t staleness = 0;
    LateOptions late{};
    /// Both read, then the first pushes three times, then the second, so that bits are the same
    /// without kSync.
    bool in_turns = false;
    std::vector<Death> deaths{};
    /// The last worker kills itself in that step; -1: never.
    int worker_dies = -1;
    std::string checkpoints{};  ///< saved there every ten steps; empty: never
    int until = kSteps;
    /// Rows lie there on disk, all but those of a push; empty: in memory.
    std::string spill_directory{};
    size_t weights = 50;         ///< of the dense parameter
    bool between_hosts = false;  ///< as processes that share no memory
  };

  /// Returns what the tables hold when all workers are done.
  static Result run(const Plan& plan) {
    const test::OwnedPort port;
    const os::SharedMemory memory =
        os::SharedMemory::create("result", sizeof(Result)).or_throw<Error>("test");
    auto* const result = reinterpret_cast<Result*>(memory.bytes().data());
    const int size = plan.servers + plan.workers;
    const std::vector<RankOutcome> outcomes =
        test::try_run_ranks(size,
                            [&](int rank) {
                              test::set_variable("RANK", std::to_string(rank));
                              test::set_variable("WORLD_SIZE", std::to_string(size));
                              test::set_variable("MASTER_ADDR", "127.0.0.1");
                              test::set_variable("MASTER_PORT", std::to_string(port.port()));
                              test::set_variable("ARGOSY_TOKEN", "a1b2c3d4e5f60718");
                              // The first worker is rank 0: it hosts the store, and does not die
                              // here.
                              if (rank < plan.workers) {
                                work(plan, rank, *result);
                              } else {
                                serve(plan, rank - plan.workers);
                              }
                            },
                            {.mode = test::RankMode::kProcesses, .deadline = 60s});
    for (int rank = 0; rank < size; ++rank) {
      bool is_killed = dies(plan, rank);
      for (const Death& death : plan.deaths) {
        is_killed = is_killed || rank == plan.workers + death.server;
      }
      const RankOutcome& outcome = outcomes[static_cast<size_t>(rank)];
      EXPECT_TRUE(is_killed ? outcome.signal == SIGKILL : outcome.ok()) << test::describe(outcome);
    }
    return *result;
  }

 private:
  static bool dies(const Plan& plan, int rank) {
    return plan.worker_dies >= 0 && rank == plan.workers - 1;
  }

  static rpc::AgentOptions agent_options(const Plan& plan, const std::string& name) {
    rpc::AgentOptions options{.name = name};
    if (plan.between_hosts) {
      options.shared_memory_bytes = 0;
    }
    return options;
  }

  static void serve(const Plan& plan, int number) {
    TableServer server(held_tables(plan.weights),
                       {.servers = names("server", plan.servers),
                        .server = number,
                        .workers = plan.workers,
                        .worker_names = names("worker", plan.workers),
                        .mode = plan.mode,
                        .staleness = plan.staleness,
                        .late = plan.late,
                        .memory_limit = plan.spill_directory.empty() ? size_t{0} : size_t{1},
                        .spill_directory = plan.spill_directory});
    rpc::Functions functions;
    server.serve(functions);
    functions.serve("die", [](int after_us, int how) {
      std::thread([after_us, how] {
        std::this_thread::sleep_for(std::chrono::microseconds(after_us));
        ::kill(::getpid(), how);
      }).detach();
    });
    rpc::Agent agent(
        agent_options(plan, names("server", plan.servers)[static_cast<size_t>(number)]), functions);
    EXPECT_TRUE(server.run(agent, Deadline::after(40s)));
    agent.shutdown(20s);
  }

  static void work(const Plan& plan, int worker, Result& result) {
    rpc::Agent agent(agent_options(plan, "worker" + std::to_string(worker)));
    TableClient client(agent,
                       held_tables(plan.weights),
                       {.servers = names("server", plan.servers),
                        .worker = static_cast<uint32_t>(worker),
                        .timeout = 20s});
    std::optional<TableSaver> saver;
    if (worker == 0 && !plan.checkpoints.empty()) {
      saver.emplace(client, plan.checkpoints);
      agent.store()->set("begun", std::to_string(saver->resume()), Deadline::after(20s));
    }
    const int begun =
        plan.checkpoints.empty() ? 0 : std::stoi(agent.store()->get("begun", Deadline::after(20s)));
    for (int step = begun; step < plan.until; ++step) {
      if (dies(plan, worker) && step == plan.worker_dies) {
        std::thread([] {
          std::this_thread::sleep_for(std::chrono::microseconds(std::random_device()() % 2000));
          ::kill(::getpid(), SIGKILL);
        }).detach();
      }
      if (saver && step % 10 == 0 && step > begun) {
        saver->save(step);
      }
      const auto start = std::chrono::steady_clock::now();
      for (const Death& death : plan.deaths) {
        if (worker == 0 && death.step == step) {
          if (death.when_safe) {
            await_backups(agent, plan);
          }
          agent.call(names("server", plan.servers)[static_cast<size_t>(death.server)],
                     "die",
                     death.after_us,
                     death.how);
        }
      }
      if (plan.in_turns) {
        train_in_turns(client, agent, worker, step);
      } else {
        train_held(client, worker, step);
      }
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      double& longest = result.longest_step_ms[static_cast<size_t>(worker)];
      longest = std::max(longest, took.count());
    }
    const std::string done = "done/" + std::to_string(worker);
    agent.store()->set(done, "1", Deadline::after(20s));
    for (int other = 0; other < plan.workers; ++other) {
      if (!dies(plan, other)) {
        agent.store()->wait({"done/" + std::to_string(other)}, Deadline::after(20s));
      }
    }
    if (worker == 0) {
      static_cast<Held&>(result) = held_by(client);
      result.saved = saver && saver->wait();
      client.stop();
    }
    agent.shutdown(20s);
  }

  static void await_backups(rpc::Agent& agent, const Plan& plan) {
    const Views views(agent.store());
    const Deadline deadline = Deadline::after(20s);
    for (int partition = 0; partition < plan.servers; ++partition) {
      while (views.get(partition).backup < 0) {
        ASSERT_FALSE(deadline.expired()) << "partition " << partition << " got no backup";
        std::this_thread::sleep_for(2ms);
      }
    }
  }

  /// The second worker pushes what three pushes of the first one have made late.
  static void train_in_turns(TableClient& client, rpc::Agent& agent, int worker, int step) {
    const auto meet = [&](const std::string& what) {
      const std::string key = fmt::format("turn/{}/{}/", step, what);
      agent.store()->set(key + std::to_string(worker), "1", Deadline::after(20s));
      agent.store()->wait({key + std::to_string(1 - worker)}, Deadline::after(20s));
    };
    HeldStep one(client, worker, step);
    one.pull();
    meet("read");
    for (int i = 0; worker == 0 && i < 3; ++i) {
      one.push();
    }
    meet("first");
    if (worker == 1) {
      one.push();
    }
    meet("second");
  }
};

TEST_F(DyingServers, InSyncModeChangeNoBit) {
  const Result calm = run({});
  EXPECT_EQ(counted(calm), kSteps * 64.0);  // the average of two workers' 64 each
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kills(); ++i) {
    const Death death{.server = i % 2,
                      .step = static_cast<int>(20 + random() % 100),
                      .after_us = static_cast<int>(random() % 2000)};
    const Result disturbed = run({.deaths = {death}});
    EXPECT_EQ(disturbed.rows, calm.rows) << "server " << death.server << " died in step "
                                         << death.step << ", " << death.after_us << " us later";
    EXPECT_EQ(disturbed.counts, calm.counts);
    EXPECT_EQ(disturbed.weight, calm.weight);
    std::cout << "step " << death.step << ": the longest steps took "
              << disturbed.longest_step_ms[0] << " and " << disturbed.longest_step_ms[1] << " ms\n";
  }
}

TEST_F(DyingServers, InAsyncModeLoseNoPushAndDoubleNone) {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kills(); ++i) {
    const Death death{.server = i % 3,
                      .step = static_cast<int>(20 + random() % 100),
                      .after_us = static_cast<int>(random() % 2000)};
    const Result result = run({.servers = 3, .mode = UpdateMode::kAsync, .deaths = {death}});
    EXPECT_EQ(counted(result), 2 * kSteps * 64.0)
        << "server " << death.server << " died in step " << death.step << ", " << death.after_us
        << " us later";
    std::cout << "step " << death.step << ": the longest steps took " << result.longest_step_ms[0]
              << " and " << result.longest_step_ms[1] << " ms\n";
  }
}

TEST_F(DyingServers, ChangeNothingOfWhatIsDoneAboutLateGradients) {
  Plan plan{.servers = 3,
            .mode = UpdateMode::kAsync,
            .late = {.scales_rates = true, .compensation = 0.5},
            .in_turns = true,
            .until = 40};
  const Result calm = run(plan);
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kills() / 2; ++i) {
    const Death first{.server = i % 3,
                      .step = static_cast<int>(3 + random() % 10),
                      .after_us = static_cast<int>(random() % 2000)};
    const Death second{.server = (i + 1) % 3,
                       .step = static_cast<int>(20 + random() % 10),
                       .after_us = static_cast<int>(random() % 2000),
                       .when_safe = true};
    plan.deaths = {first, second};
    const Result disturbed = run(plan);
    EXPECT_EQ(disturbed.rows, calm.rows)
        << "servers " << first.server << " and " << second.server << " died in steps " << first.step
        << " and " << second.step << ", " << first.after_us << " and " << second.after_us
        << " us later";
    EXPECT_EQ(disturbed.counts, calm.counts);
    EXPECT_EQ(disturbed.weight, calm.weight);
  }
  plan.deaths.clear();
  for (const LateOptions& less : {LateOptions{.scales_rates = true}, {.compensation = 0.5}}) {
    plan.late = less;
    EXPECT_NE(run(plan).rows, calm.rows) << "nothing was late";
  }
}

/// Its weights with their state are more than a message between hosts may have.
TEST_F(DyingServers, OfSeveralHostsHaveBackupsOfAnySize) {
  Plan plan{.servers = 3, .until = 6, .weights = 3'000'000, .between_hosts = true};
  const Result calm = run(plan);
  constexpr int kAfterTheAnswer = 10'000;
  plan.deaths = {{.server = 0, .step = 1, .after_us = kAfterTheAnswer},
                 {.server = 1, .step = 4, .after_us = kAfterTheAnswer, .when_safe = true}};
  const Result disturbed = run(plan);
  EXPECT_EQ(static_cast<const Held&>(disturbed), static_cast<const Held&>(calm));
}

class DyingWorkers : public DyingServers {};

TEST_F(DyingWorkers, KeepNobodyWaiting) {
  for (const UpdateMode mode : {UpdateMode::kAsync, UpdateMode::kHalfAsync}) {
    const Result result = run({.mode = mode, .staleness = 2, .worker_dies = 20});
    EXPECT_GE(counted(result), (kSteps + 20) * 64.0);  // its last push may have come or not
    EXPECT_LE(counted(result), (kSteps + 60) * 64.0) << "it died in time";
  }
}

/// Two of three servers, the second one when all has two copies again.
std::vector<Death> one_after_the_other(std::mt19937_64& random, int round) {
  const int first = static_cast<int>(random() % 3);
  return {{.server = first,
           .step = static_cast<int>(5 + random() % 20),
           .after_us = static_cast<int>(random() % 2000)},
          {.server = (first + 1 + round % 2) % 3,
           .step = static_cast<int>(50 + random() % 50),
           .after_us = static_cast<int>(random() % 2000),
           .when_safe = true}};
}

TEST_F(DyingServers, OneAfterTheOtherLoseNothing) {
  const Result calm = run({});
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kills(); ++i) {
    const std::vector<Death> deaths = one_after_the_other(random, i);
    const UpdateMode mode = i % 3 == 2 ? UpdateMode::kAsync : UpdateMode::kSync;
    const Result disturbed = run({.servers = 3, .mode = mode, .deaths = deaths});
    const std::string what = fmt::format("servers {} and {} died in steps {} and {}",
                                         deaths[0].server,
                                         deaths[1].server,
                                         deaths[0].step,
                                         deaths[1].step);
    if (mode == UpdateMode::kAsync) {
      EXPECT_EQ(counted(disturbed), 2 * kSteps * 64.0) << what;
    } else {
      EXPECT_EQ(disturbed.rows, calm.rows) << what;
      EXPECT_EQ(disturbed.counts, calm.counts) << what;
      EXPECT_EQ(disturbed.weight, calm.weight) << what;
    }
  }
}

/// A new backup gets a copy of rows that lie on disk, and has them on its own then.
TEST_F(DyingServers, WithRowsOnDiskChangeNoBit) {
  const Result calm = run({});
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < std::max(kills() / 2, 2); ++i) {
    const test::TempDir directory;
    const std::vector<Death> deaths = one_after_the_other(random, i);
    const Result disturbed =
        run({.servers = 3, .deaths = deaths, .spill_directory = directory.path().string()});
    const std::string what = fmt::format("servers {} and {} died in steps {} and {}",
                                         deaths[0].server,
                                         deaths[1].server,
                                         deaths[0].step,
                                         deaths[1].step);
    EXPECT_EQ(disturbed.rows, calm.rows) << what;
    EXPECT_EQ(disturbed.counts, calm.counts) << what;
    EXPECT_EQ(disturbed.weight, calm.weight) << what;
    const auto folders = std::distance(std::filesystem::directory_iterator(directory.path()), {});
    EXPECT_EQ(folders, 2) << "of those that were killed, and of no other";
  }
}

TEST_F(DyingServers, WhileTheySaveLoseNothingButThatCheckpoint) {
  const Result calm = run({});
  std::mt19937_64 random(std::random_device{}());
  int missed = 0;
  for (int i = 0; i < kills(); ++i) {
    const test::TempDir directory;
    const std::string folder = directory.path().string();
    // In the step that follows a save, whose files take longer than the step.
    const Death death{.server = i % 3,
                      .step = static_cast<int>(10 * (2 + random() % 7)),
                      .after_us = static_cast<int>(random() % 3000)};
    const int until = death.step + (i % 2 == 0 ? 5 : 25);
    const Result disturbed =
        run({.servers = 3, .deaths = {death}, .checkpoints = folder, .until = until});
    missed += disturbed.saved ? 0 : 1;
    EXPECT_TRUE(disturbed.saved || until == death.step + 5) << "the saves after it came too";
    const checkpoint::Newest newest = checkpoint::find_newest(folder);
    ASSERT_TRUE(newest.path) << "no checkpoint is there";
    EXPECT_EQ(newest.manifest->step, disturbed.saved ? until - 5 : death.step - 10);
    EXPECT_THAT(newest.skipped, ::testing::IsEmpty());
    const Result resumed = run({.checkpoints = folder});
    EXPECT_EQ(resumed.rows, calm.rows) << "server " << death.server << " died in step "
                                       << death.step << ", " << death.after_us << " us later";
    EXPECT_EQ(resumed.weight, calm.weight);
  }
  std::cout << missed << " of " << kills() << " deaths cost a checkpoint\n";
}

}  // namespace
}  // namespace argosy::ps
