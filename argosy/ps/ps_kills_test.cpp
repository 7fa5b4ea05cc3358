// Servers that are killed at random moments and started again, counted by what was under way.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/os/memory.h"
#include "argosy/ps/table_saver.h"
#include "argosy/ps/table_server.h"
#include "argosy/ps/test_held.h"
#include "argosy/ps/views.h"
#include "argosy/rendezvous/test_store_host.h"

#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

using namespace std::chrono_literals;

constexpr int kServers = 4;
constexpr int kWorkers = 2;
constexpr int kKillSteps = 500;

/// What was under way at a kill. Of several the last one here counts.
enum class Phase { kBetween, kPull, kPush, kSave, kBackup, kRestart };
constexpr std::array<std::string_view, 6> kPhases{
    "between steps", "pull", "push", "save", "backup being made", "restart"};

/// In memory that the processes share.
struct Outcome : Held {
  std::array<int, kPhases.size()> kills;
  double longest_step_ms;
};

struct KillPlan {
  UpdateMode mode = UpdateMode::kSync;
  bool kills = true;
  std::string checkpoints{};
};

/// Kills servers from a thread of the first worker, each at a moment when what it has somebody else
/// has too.
class Killer final {
 public:
  Killer(const KillPlan& plan, std::shared_ptr<rendezvous::Store> store, Outcome& outcome)
      : plan_(plan), store_(std::move(store)), views_(store_), outcome_(outcome) {
    thread_ = std::thread([this] { run(); });
  }
  ~Killer() {
    over_ = true;
    thread_.join();
  }
  Killer(const Killer&) = delete;
  Killer& operator=(const Killer&) = delete;
  Killer(Killer&&) = delete;
  Killer& operator=(Killer&&) = delete;

  /// What the worker does from now on.
  void now(Phase phase) { phase_ = phase; }

 private:
  void run() {
    while (plan_.kills && !over_) {
      const bool waits = random_() % 4 != 0;  // until all that died before is whole again
      while (waits && !over_ && !is_whole()) {
        std::this_thread::sleep_for(2ms);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 10'000));
      try_to_kill(static_cast<int>(random_() % kServers));
    }
  }

  /// Returns the servers that views name; -1 among them: a partition has no backup.
  std::set<int> look() {
    views_now_.clear();
    std::set<int> named;
    for (int partition = 0; partition < kServers; ++partition) {
      views_now_.push_back(views_.get(partition));
      named.insert({views_now_.back().primary, views_now_.back().backup});
    }
    std::erase_if(gone_, [&](int one) { return !named.contains(one); });  // it may have roles again
    return named;
  }

  bool is_whole() {
    for (size_t server = 0; server < kServers; ++server) {
      if (process_of(static_cast<int>(server)) == killed_[server]) {
        return false;
      }
    }
    return !look().contains(-1) && gone_.empty();
  }

  void try_to_kill(int server) {
    const std::set<int> named = look();
    const auto keeps = [&](int one) { return one >= 0 && one != server && !gone_.contains(one); };
    const bool is_safe = std::ranges::all_of(
        views_now_, [&](const View& view) { return keeps(view.primary) || keeps(view.backup); });
    const int pid = process_of(server);
    if (!is_safe || pid == killed_[static_cast<size_t>(server)]) {
      return;  // it would take something with it, or has not come back
    }
    const Phase phase = phase_now(named, server);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    ++outcome_.kills[static_cast<size_t>(phase)];
    killed_[static_cast<size_t>(server)] = pid;
    gone_.insert(server);
  }

  [[nodiscard]] int process_of(int server) const {
    return std::stoi(store_->get("pid/" + std::to_string(server), Deadline::after(20s)));
  }

  [[nodiscard]] Phase phase_now(const std::set<int>& named, int server) const {
    if (killed_[static_cast<size_t>(server)] != 0 && !named.contains(server)) {
      return Phase::kRestart;  // it is there again, and nothing has come to it yet
    }
    if (named.contains(-1)) {
      return Phase::kBackup;
    }
    for (const auto& entry : std::filesystem::directory_iterator(plan_.checkpoints)) {
      if (entry.path().filename().string().starts_with(".step-")) {
        return Phase::kSave;
      }
    }
    return phase_;
  }

  const KillPlan& plan_;
  const std::shared_ptr<rendezvous::Store> store_;
  const Views views_;
  Outcome& outcome_;
  std::mt19937_64 random_{std::random_device{}()};
  std::vector<View> views_now_{};
  std::array<int, kServers> killed_{};  ///< the last process of each
  std::set<int> gone_{};                ///< killed, and views still name it
  std::atomic<Phase> phase_ = Phase::kBetween;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

class KilledServers : public ::testing::Test {
 protected:
  static Outcome run(const KillPlan& plan) {
    const os::SharedMemory memory =
        os::SharedMemory::create("outcome", sizeof(Outcome)).or_throw<Error>("test");
    auto* const outcome = reinterpret_cast<Outcome*>(memory.bytes().data());
    const auto ranks = test::launched_ranks(
        kServers + kWorkers,
        kServers + kWorkers,
        [&](int rank) {
          if (rank < kWorkers) {
            work(plan, rank, *outcome);
          } else {
            serve_again_and_again(plan, rank - kWorkers);
          }
        },
        120s);
    for (const test::RankOutcome& rank : ranks) {
      EXPECT_TRUE(rank.ok()) << test::describe(rank);
    }
    return *outcome;
  }

 private:
  /// As a launcher does. This process has no other thread, so that it may fork.
  static void serve_again_and_again(const KillPlan& plan, int server) {
    for (;;) {
      const int child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        try {
          serve(plan, server);
        } catch (const std::exception& error) {
          std::cerr << "server " << server << ": " << error.what() << std::endl;
          ::_exit(1);
        }
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (!WIFSIGNALED(status)) {
        ASSERT_EQ(WEXITSTATUS(status), 0) << "server " << server;
        return;
      }
      ASSERT_EQ(WTERMSIG(status), SIGKILL) << "server " << server;
    }
  }

  static void serve(const KillPlan& plan, int server) {
    const std::vector<std::string> servers = names("server", kServers);
    TableServer tables(held_tables(),
                       {.servers = servers,
                        .server = server,
                        .workers = kWorkers,
                        .worker_names = names("worker", kWorkers),
                        .mode = plan.mode});
    rpc::Functions functions;
    tables.serve(functions);
    rpc::Agent agent({.name = servers[static_cast<size_t>(server)]}, functions);
    agent.store()->set(
        "pid/" + std::to_string(server), std::to_string(::getpid()), Deadline::after(20s));
    EXPECT_TRUE(tables.run(agent, Deadline::after(120s)));
    agent.shutdown(20s);
  }

  static void work(const KillPlan& plan, int worker, Outcome& outcome) {
    rpc::Agent agent({.name = names("worker", kWorkers)[static_cast<size_t>(worker)]});
    TableClient client(agent,
                       held_tables(),
                       {.servers = names("server", kServers),
                        .worker = static_cast<uint32_t>(worker),
                        .timeout = 30s});
    if (worker == 0) {
      lead(plan, agent, client, outcome);
    } else {
      agent.store()->wait({"begun"}, Deadline::after(20s));
      for (int step = 0; step < kKillSteps; ++step) {
        train_held(client, worker, step);
      }
      agent.store()->set("followed", "1", Deadline::after(20s));
    }
    agent.shutdown(20s);
  }

  static void lead(const KillPlan& plan, rpc::Agent& agent, TableClient& client, Outcome& outcome) {
    TableSaver saver(client, plan.checkpoints, {.keep_last = 2});
    (void)saver.resume();
    agent.store()->set("begun", "1", Deadline::after(20s));
    {
      Killer killer(plan, agent.store(), outcome);
      for (int step = 0; step < kKillSteps; ++step) {
        const auto start = std::chrono::steady_clock::now();
        if (step % 40 == 5) {
          saver.save(step);
        }
        HeldStep one(client, 0, step);
        killer.now(Phase::kPull);
        one.pull();
        killer.now(Phase::kPush);
        one.push();
        killer.now(Phase::kBetween);
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - start;
        outcome.longest_step_ms = std::max(outcome.longest_step_ms, took.count());
      }
    }
    (void)saver.wait();
    agent.store()->wait({"followed"}, Deadline::after(40s));
    await_backups(agent);
    static_cast<Held&>(outcome) = held_by(client);
    client.stop();
  }

  static void await_backups(rpc::Agent& agent) {
    const Views views(agent.store());
    const Deadline deadline = Deadline::after(20s);
    for (int partition = 0; partition < kServers; ++partition) {
      while (views.get(partition).backup < 0) {
        ASSERT_FALSE(deadline.expired()) << "partition " << partition << " got no backup";
        std::this_thread::sleep_for(5ms);
      }
    }
  }

 protected:
  /// Runs trainings until so many servers have died as are wanted.
  static void check(UpdateMode mode, const std::function<void(const Outcome&)>& look) {
    std::array<int, kPhases.size()> kills_of{};
    int sum = 0;
    std::vector<double> longest;
    while (sum < kills()) {
      const test::TempDir directory;
      const Outcome outcome = run({.mode = mode, .checkpoints = directory.path().string()});
      look(outcome);
      EXPECT_THAT(checkpoint::find_newest(directory.path().string()).skipped, ::testing::IsEmpty());
      for (size_t i = 0; i < kills_of.size(); ++i) {
        kills_of[i] += outcome.kills[i];
        sum += outcome.kills[i];
      }
      longest.push_back(outcome.longest_step_ms);
      if (HasFailure()) {
        break;
      }
    }
    std::cout << sum << " servers killed in " << longest.size() << " trainings:";
    for (size_t i = 0; i < kills_of.size(); ++i) {
      std::cout << " " << kPhases[i] << " " << kills_of[i]
                << (i + 1 < kills_of.size() ? "," : "\n");
    }
    std::ranges::sort(longest);
    std::cout << "the longest step of a training took " << longest[longest.size() / 2]
              << " ms in the median, " << longest.back() << " ms at most\n";
  }
};

TEST_F(KilledServers, AtAnyMomentChangeNoBitInSyncMode) {
  const test::TempDir directory;
  const Outcome calm = run({.kills = false, .checkpoints = directory.path().string()});
  check(UpdateMode::kSync, [&](const Outcome& outcome) {
    EXPECT_EQ(static_cast<const Held&>(outcome), static_cast<const Held&>(calm));
  });
}

TEST_F(KilledServers, AtAnyMomentLoseNoPushAndDoubleNoneInAsyncMode) {
  check(UpdateMode::kAsync,
        [](const Outcome& outcome) { EXPECT_EQ(counted(outcome), kWorkers * kKillSteps * 64.0); });
}

}  // namespace
}  // namespace argosy::ps
