// Processes that are killed at random moments and started again, counted by what was under way.
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
#include <map>
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
enum class Phase { kBetween, kPull, kPush, kSave, kBackup, kRestart, kWorker };
constexpr std::array<std::string_view, 7> kPhases{
    "between steps", "pull", "push", "save", "backup being made", "restart", "a worker itself"};

/// In memory that the processes share.
struct Outcome : Held {
  std::array<int, kPhases.size()> kills;
  double longest_step_ms;
};

struct KillPlan {
  UpdateMode mode = UpdateMode::kSync;
  bool worker_too = false;  ///< the second one dies now and then, too
  bool kills = true;
  std::string checkpoints{};
};

/// Kills processes from a thread of the first worker: servers, each at a moment when what it has
/// somebody else has too, and the second worker.
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
      if (const int server = static_cast<int>(random_() % (kServers + 1)); server < kServers) {
        try_to_kill_server(server);
      } else if (plan_.worker_too) {
        (void)kill("worker1", Phase::kWorker);
      }
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
    for (const auto& [name, process] : killed_) {
      if (process_of(name) == process) {
        return false;
      }
    }
    return !look().contains(-1) && gone_.empty();
  }

  void try_to_kill_server(int server) {
    const std::set<int> named = look();
    const auto keeps = [&](int one) { return one >= 0 && one != server && !gone_.contains(one); };
    const bool is_safe = std::ranges::all_of(
        views_now_, [&](const View& view) { return keeps(view.primary) || keeps(view.backup); });
    if (is_safe && kill(name_of(server), phase_now(named, server))) {
      gone_.insert(server);
    }
  }

  /// False: the process that was killed last has not come back.
  bool kill(const std::string& name, Phase phase) {
    const int pid = process_of(name);
    if (pid == killed_[name]) {
      return false;
    }
    EXPECT_EQ(::kill(pid, SIGKILL), 0);
    ++outcome_.kills[static_cast<size_t>(phase)];
    killed_[name] = pid;
    return true;
  }

  [[nodiscard]] static std::string name_of(int server) { return fmt::format("server{}", server); }
  [[nodiscard]] int process_of(const std::string& name) const {
    return std::stoi(store_->get("pid/" + name, Deadline::after(20s)));
  }

  [[nodiscard]] Phase phase_now(const std::set<int>& named, int server) const {
    if (killed_.contains(name_of(server)) && !named.contains(server)) {
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
  std::map<std::string, int> killed_{};  ///< the last process of each
  std::set<int> gone_{};                 ///< killed, and views still name it
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
          if (rank == 0) {
            lead(plan, *outcome);
          } else if (rank < kWorkers) {
            again_and_again([&] { follow(rank); });
          } else {
            again_and_again([&] { serve(plan, rank - kWorkers); });
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
  static void again_and_again(const std::function<void()>& life) {
    for (;;) {
      const int child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        try {
          life();
        } catch (const std::exception& error) {
          std::cerr << error.what() << std::endl;
          ::_exit(1);
        }
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (!WIFSIGNALED(status)) {
        ASSERT_EQ(WEXITSTATUS(status), 0);
        return;
      }
      ASSERT_EQ(WTERMSIG(status), SIGKILL);
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
    say_process(agent, servers[static_cast<size_t>(server)]);
    EXPECT_TRUE(tables.run(agent, Deadline::after(120s)));
    agent.shutdown(20s);
  }

  static void say_process(rpc::Agent& agent, const std::string& name) {
    agent.store()->set("pid/" + name, std::to_string(::getpid()), Deadline::after(20s));
  }

  static ClientOptions client_options(const rpc::Agent& agent, int worker) {
    return {.servers = names("server", kServers),
            .worker = static_cast<uint32_t>(worker),
            .goes_on = agent.rejoined(),
            .timeout = 30s};
  }

  static void follow(int worker) {
    const std::string name = fmt::format("worker{}", worker);
    rpc::Agent agent({.name = name});
    say_process(agent, name);
    TableClient client(agent, held_tables(), client_options(agent, worker));
    agent.store()->wait({"begun"}, Deadline::after(20s));
    for (auto step = static_cast<int>(client.steps_before()); step < kKillSteps; ++step) {
      train_held(client, worker, step);
    }
    agent.store()->set("followed", "1", Deadline::after(20s));
    agent.store()->wait({"over"}, Deadline::after(60s));  // it may be killed until then
    agent.shutdown(20s);
  }

  static void lead(const KillPlan& plan, Outcome& outcome) {
    rpc::Agent agent({.name = "worker0"});
    TableClient client(agent, held_tables(), client_options(agent, 0));
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
    agent.store()->set("over", "1", Deadline::after(20s));
    (void)saver.wait();
    agent.store()->wait({"followed"}, Deadline::after(40s));
    await_backups(agent);
    static_cast<Held&>(outcome) = held_by(client);
    client.stop();
    agent.shutdown(20s);
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
  static void check(KillPlan plan, const std::function<void(const Outcome&)>& look) {
    std::array<int, kPhases.size()> kills_of{};
    int sum = 0;
    std::vector<double> longest;
    while (sum < kills()) {
      const test::TempDir directory;
      plan.checkpoints = directory.path().string();
      const Outcome outcome = run(plan);
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
    std::cout << sum << " processes killed in " << longest.size() << " trainings:";
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
  check({.mode = UpdateMode::kSync}, [&](const Outcome& outcome) {
    EXPECT_EQ(static_cast<const Held&>(outcome), static_cast<const Held&>(calm));
  });
}

TEST_F(KilledServers, AtAnyMomentLoseNoPushAndDoubleNoneInAsyncMode) {
  check({.mode = UpdateMode::kAsync},
        [](const Outcome& outcome) { EXPECT_EQ(counted(outcome), kWorkers * kKillSteps * 64.0); });
}

TEST_F(KilledServers, BesideAWorkerThatDiesLoseNoPushAndDoubleNone) {
  check({.mode = UpdateMode::kAsync, .worker_too = true},
        [](const Outcome& outcome) { EXPECT_EQ(counted(outcome), kWorkers * kKillSteps * 64.0); });
}

}  // namespace
}  // namespace argosy::ps
