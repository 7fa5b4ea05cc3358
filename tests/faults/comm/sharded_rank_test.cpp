/// A rank of a model that ranks divide (ZeRO stage 3) is killed or stopped while the others wait
/// for it: for its values in forward, for its gradients in backward, or in the update. They all end
/// within their deadline, by an error that names it and says what was waited for. Ranks are
/// processes, and several groups of them run at once, for they mostly wait.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/comm/hooks.h"
#include "argosy/comm/init.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/clip.h"
#include "argosy/parallel/sharded/fully_shard.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/stopped_ranks.h"
#include "argosy/rendezvous/store.h"

#include "tests/support/error_text.h"
#include "tests/support/run_ranks.h"
#include "tests/support/shared_counter.h"
#include "tests/support/temp_dir.h"

namespace argosy::parallel {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kForward = "forward";
constexpr std::string_view kBackward = "backward";
constexpr std::string_view kStep = "step";

/// Where the victim, the last rank, ends: as it is about to take part in an operation.
struct Place {
  std::string_view call{};       ///< the program's call in which the others get their error
  std::string_view operation{};  ///< the victim's …
  int number = 1;                ///< … of this name, counted from where the call begins
  std::string waited_for{};      ///< what the others say that they waited for
  bool shares = true;            ///< DdpOptions::shared_memory
  bool writes = false;           ///< the program writes a parameter before the call
  int degree = 0;                ///< ShardOptions::degree, of 4 ranks; 0: all of 3

  [[nodiscard]] int ranks() const { return degree == 0 ? 3 : 4; }
  [[nodiscard]] int victim() const { return ranks() - 1; }
};

/// Ends or stops this process where a place says.
class Ending final : public comm::Hook {
 public:
  Ending(int signal, std::string_view operation, test::SharedCounter& process)
      : signal_(signal), operation_(operation), process_(process) {}

  void begin_to_count(int number) { left_ = number; }
  void on_started(const comm::OperationEvent& event) override {
    if (event.op == operation_ && left_.fetch_sub(1) == 1) {
      process_.add(::getpid());
      ::raise(signal_);
    }
  }

 private:
  const int signal_;
  const std::string_view operation_;
  test::SharedCounter& process_;
  std::atomic<int> left_{0};
};

/// What a rank trains, and how far it has come.
class Training {
 public:
  Training(const comm::Group& world, const Place& place, std::chrono::milliseconds timeout)
      : rank_(world.rank()),
        model_(fully_shard(testing::Blocks(8, 2),
                           world,
                           {.shared_memory = place.shares,
                            .shard = ShardOptions{.degree = place.degree, .unit_bytes = 0},
                            .timeout = timeout})),
        optimizer_(model_, {.lr = 0.02, .grad_clip = optim::ClipGradByGlobalNorm(0.1)}) {
    EXPECT_TRUE(model_.divide_step(optimizer_));
  }

  /// `before` is called with the name of each call.
  template <typename Before>
  void update(const Before& before) {
    const auto begin = [&](std::string_view call) { before(call_ = call); };
    begin(kForward);
    const at::Tensor loss = model_(testing::values({4, 3}, rank_, at::kFloat)).square().mean();
    begin(kBackward);
    loss.backward();
    begin(kStep);
    optimizer_.step();
    optimizer_.zero_grad();
  }
  /// On this rank's own memory, which goes with the guard: the next use is to tell the others.
  void write_a_parameter() {
    const WholeParameters whole = model_.whole_parameters();
    const at::NoGradGuard no_grad;
    model_.parameters().front().mul_(0.5);
  }
  [[nodiscard]] std::string_view call() const { return call_; }

 private:
  const int rank_;
  testing::ShardedBlocks model_;
  optim::Adam optimizer_;
  std::string_view call_{};
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// First use of libtorch's operators takes long, and is nothing that other ranks shall wait for.
void warm_up() {
  testing::Blocks(8, 2)(testing::values({4, 3}, 1, at::kFloat)).square().mean().backward();
}

/// Nothing that has a name in a file system would go with processes that are killed.
void expect_no_file_of_memory() {
  EXPECT_THAT(text_of("/proc/self/maps"), Not(HasSubstr("/dev/shm/")));
}

enum class Launcher { kNone, kTellsWhoIsStopped };

/// Processes of several groups, each of which trains and has its victim. One more process looks
/// after those that are stopped.
class Groups {
 public:
  Groups(std::string backend, int signal, std::vector<Place> places, Launcher launcher)
      : backend_(std::move(backend)),
        signal_(signal),
        places_(std::move(places)),
        launcher_(launcher),
        victims_(places_.size()) {
    for (size_t group = 0; group < places_.size(); ++group) {
      for (int rank = 0; rank < places_[group].ranks(); ++rank) {
        seats_.push_back({group, rank});
      }
    }
  }

  /// Returns how the ranks of each group ended.
  [[nodiscard]] std::vector<std::vector<test::RankOutcome>> run() {
    const auto processes = static_cast<int>(seats_.size());
    auto all = test::try_run_ranks(processes + 1,
                                   [&](int process) {
                                     process == processes
                                         ? look_after_the_stopped()
                                         : live(seats_[static_cast<size_t>(process)]);
                                   },
                                   {.mode = test::RankMode::kProcesses, .deadline = 40s});
    EXPECT_TRUE(all.back().ok()) << describe(all.back());
    std::vector<std::vector<test::RankOutcome>> groups(places_.size());
    for (size_t i = 0; i < seats_.size(); ++i) {
      all[i].rank = seats_[i].rank;
      groups[seats_[i].group].push_back(std::move(all[i]));
    }
    return groups;
  }

 private:
  struct Seat {
    size_t group;
    int rank;
  };
  /// Counts a rank that has ended by itself.
  struct Ended {
    explicit Ended(test::SharedCounter& counter) : ended(counter) {}
    ~Ended() { ended.add(1); }
    Ended(const Ended&) = delete;
    Ended& operator=(const Ended&) = delete;
    test::SharedCounter& ended;
  };

  /// A deadline that has to pass is short, and one that must not is long.
  [[nodiscard]] std::chrono::milliseconds timeout() const {
    return signal_ == SIGSTOP ? 1500ms : 30s;
  }
  [[nodiscard]] std::shared_ptr<rendezvous::Store> store_of(size_t group) const {
    return rendezvous::file_store((folder_.path() / std::to_string(group)).string());
  }

  /// The ranks of all groups, so that none computes while the deadline of another one runs.
  void meet() {
    const auto processes = static_cast<int64_t>(seats_.size());
    const int64_t meeting = (met_.add(1) - 1) / processes + 1;
    EXPECT_TRUE(met_.wait_for(meeting * processes));
  }

  void live(const Seat& seat) {
    const Ended ended(ended_);
    const Place& place = places_[seat.group];
    const auto job = rendezvous::prefix_store(store_of(seat.group), "run/test/1");
    const comm::Group world = comm::connect(
        {.backend = backend_,
         .store = job,
         .rank = seat.rank,
         .size = place.ranks(),
         .timeout = 30s,
         .keep = job->announce("rank/" + std::to_string(seat.rank), Deadline::after(30s))});
    const auto ending = std::make_shared<Ending>(signal_, place.operation, victims_[seat.group]);
    comm::add_hook(world, ending);
    warm_up();
    meet();
    Training training(world, place, timeout());
    training.update([](std::string_view) {});
    if (place.writes) {
      training.write_a_parameter();
    }
    try {
      training.update([&](std::string_view call) {
        if (call == place.call) {
          meet();
          ending->begin_to_count(seat.rank == place.victim() ? place.number : 0);
        }
      });
      training.update([](std::string_view) {});  // of those that did not miss the victim before
    } catch (const CommError&) {
      expect_it_is_told(place, training);
      throw;
    }
  }

  void expect_it_is_told(const Place& place, Training& training) const {
    expect_no_file_of_memory();
    if (place.degree > 0) {
      return;  // those that miss the victim's partner get their error in a later call
    }
    EXPECT_EQ(training.call(), place.call);
    if (signal_ == SIGKILL) {  // whoever goes on hears it again
      EXPECT_THAT(test::error_text<Error>([&] { training.update([](std::string_view) {}); }),
                  HasSubstr("rank " + std::to_string(place.victim())));
      if (place.waited_for.starts_with("wait until all have written")) {
        EXPECT_EQ(training.call(), kForward);  // nobody computes with values written in part
      }
    }
  }

  /// They stay until all others have ended, without their help.
  void look_after_the_stopped() {
    if (signal_ != SIGSTOP) {
      return;
    }
    for (size_t group = 0; group < places_.size(); ++group) {
      ASSERT_TRUE(victims_[group].wait_for(1));
      if (launcher_ == Launcher::kTellsWhoIsStopped) {
        EXPECT_NE(rendezvous::tell_stopped(*store_of(group),
                                           "test",
                                           places_[group].victim(),
                                           "stopped by SIGSTOP",
                                           Deadline::after(10s)),
                  "");
      }
    }
    EXPECT_TRUE(ended_.wait_for(static_cast<int64_t>(seats_.size() - places_.size())));
    for (test::SharedCounter& victim : victims_) {
      const auto process = static_cast<pid_t>(victim.add(0));
      EXPECT_THAT(text_of("/proc/" + std::to_string(process) + "/status"),
                  HasSubstr("T (stopped)"));
      ::kill(process, SIGKILL);
    }
  }

  const std::string backend_;
  const int signal_;
  const std::vector<Place> places_;
  const Launcher launcher_;
  std::vector<Seat> seats_;
  const test::TempDir folder_;
  std::vector<test::SharedCounter> victims_;  ///< their process ids
  test::SharedCounter met_, ended_;
};

/// An error that blames `victim`, called so by the group in which it was missed.
void expect_blames(const test::RankOutcome& outcome,
                   int signal,
                   const std::string& victim,
                   int number) {
  EXPECT_FALSE(outcome.timed_out || outcome.expectation_failed) << describe(outcome);
  EXPECT_THAT(outcome.peers, ElementsAre(number)) << describe(outcome);
  if (signal == SIGSTOP) {
    EXPECT_THAT(outcome.error, HasSubstr("timed out after 1500 ms waiting for " + victim));
  } else {  // found, not waited for
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.error, ContainsRegex("rank [23][)]? (died|is gone)"));
  }
}

void expect_victims_named(const std::string& backend,
                          int signal,
                          const std::vector<Place>& places) {
  const auto groups = Groups(backend, signal, places, Launcher::kNone).run();
  for (size_t i = 0; i < groups.size(); ++i) {
    SCOPED_TRACE(std::string(places[i].call) + ", " + std::string(places[i].operation));
    for (const test::RankOutcome& outcome : groups[i]) {
      if (outcome.rank == places[i].victim()) {
        EXPECT_EQ(outcome.signal, SIGKILL) << describe(outcome);
      } else {
        expect_blames(outcome, signal, "rank 2", 2);
        EXPECT_THAT(outcome.error, HasSubstr(places[i].waited_for));
      }
    }
  }
}

/// Values that the ranks of a host have once, and those that each gathers.
std::vector<Place> over_shared_memory() {
  return {{.call = kForward,
           .operation = "all_gather",
           .number = 3,
           .waited_for = "all_gather",
           .shares = false},
          {.call = kBackward,
           .operation = "reduce_scatter",
           .number = 2,
           .waited_for = "reduce_scatter"},
          {.call = kStep,
           .operation = "barrier",
           .number = 1,
           .waited_for = "wait until nobody reads the values that an update is about to change"},
          {.call = kStep,
           .operation = "barrier",
           .number = 2,
           .waited_for = "wait until all have written the values that they have updated"},
          {.call = kForward,
           .operation = "barrier",
           .number = 1,
           .waited_for = "wait until nobody reads the values that were written outside of a step",
           .writes = true},
          {.call = kForward,
           .operation = "barrier",
           .number = 2,
           .waited_for = "wait until all have written them",
           .writes = true}};
}

std::vector<Place> over_connections() {
  return {{.call = kForward, .operation = "all_gather", .number = 3, .waited_for = "all_gather"},
          {.call = kBackward, .operation = "all_gather"},  // or a reduction, which waits meanwhile
          {.call = kBackward,
           .operation = "reduce_scatter",
           .number = 2,
           .waited_for = "reduce_scatter"},
          {.call = kStep, .operation = "all_reduce", .waited_for = "all_reduce"}};
}

TEST(ShardedRank, KilledIsNamedOverSharedMemory) {
  expect_victims_named("shm", SIGKILL, over_shared_memory());
}

TEST(ShardedRank, StoppedIsNamedOverSharedMemory) {
  expect_victims_named("shm", SIGSTOP, over_shared_memory());
}

TEST(ShardedRank, KilledIsNamedOverGloo) {
  expect_victims_named("gloo", SIGKILL, over_connections());
}

TEST(ShardedRank, StoppedIsNamedOverGloo) {
  expect_victims_named("gloo", SIGSTOP, over_connections());
}

/// Ranks 0 and 1 divide the parameters, and so do 2 and 3. In forward the victim's partner misses
/// it in a gather of the two, and all others miss both in the reduction, but blame the victim. In
/// an update only the rank with the same part misses it.
void expect_victims_named_by_both_pairs(const std::string& backend, int signal) {
  const std::vector<Place> places{
      {.call = kForward, .operation = "all_gather", .number = 3, .shares = false, .degree = 2},
      {.call = kStep, .operation = "all_gather", .shares = false, .degree = 2}};
  const auto groups = Groups(backend, signal, places, Launcher::kTellsWhoIsStopped).run();
  for (const int rank : {0, 1}) {
    expect_blames(groups[0][static_cast<size_t>(rank)], signal, "rank 3", 3);
  }
  expect_blames(groups[0][2], signal, "rank 1 (world rank 3)", 1);
  expect_blames(groups[1][1], signal, "rank 1 (world rank 3)", 1);
  expect_blames(groups[1][2], signal, "rank 1 (world rank 3)", 1);
  const test::RankOutcome& outsider = groups[1][0];
  EXPECT_THAT(outsider.peers, IsEmpty()) << describe(outsider);
  EXPECT_THAT(outsider.error, HasSubstr("world rank 3")) << describe(outsider);
}

TEST(ShardedRank, KilledIsNamedByBothPairs) {
  expect_victims_named_by_both_pairs("shm", SIGKILL);
  expect_victims_named_by_both_pairs("gloo", SIGKILL);
}

TEST(ShardedRank, StoppedIsNamedByBothPairsWhereALauncherTells) {
  expect_victims_named_by_both_pairs("gloo", SIGSTOP);
}

}  // namespace
}  // namespace argosy::parallel
