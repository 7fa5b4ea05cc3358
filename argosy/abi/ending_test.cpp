/// How groups end: closed, freed, cut short, and by the death of the rank that hosts their store.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <chrono>
#include <csignal>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "argosy/abi/comm_test_support.h"

namespace argosy::abi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(AbiEnding, AClosedGroupAcceptsNothing) {
  with_ranks(2, [](Rank& rank, int /*me*/) {
    argosy_group_close(rank.group(), 1'000);
    Operation operation([](ArgosyHere*) { return int{ARGOSY_OK}; });
    EXPECT_EQ(operation.submit(rank), ARGOSY_MISUSED);
    EXPECT_THAT(rank.why(), HasSubstr("was destroyed"));
  });
}

/// A call that never ends, for nobody else makes it.
class Endless final {
 public:
  explicit Endless(Rank& rank) {
    EXPECT_EQ(operation_.submit(rank), ARGOSY_OK) << rank.why();
    running_.get_future().wait();
  }
  [[nodiscard]] Ended wait() { return operation_.wait(); }

 private:
  std::promise<void> running_;
  Operation operation_{[this](ArgosyHere* here) {
    running_.set_value();
    const ArgosyStep barrier = step(ARGOSY_BARRIER, nullptr, nullptr, 0);
    return argosy_step(here, &barrier);
  }};
};

/// Waits until the group accepts nothing any more. Returns what it has accepted until then.
std::deque<Operation> wait_until_closing(Rank& rank) {
  std::deque<Operation> accepted;
  do {
    std::this_thread::yield();
    accepted.emplace_back([](ArgosyHere*) { return int{ARGOSY_OK}; });
  } while (accepted.back().submit(rank) == ARGOSY_OK);
  return accepted;
}

TEST(AbiEnding, WhoHasNoTimeCutsShortWhoHas) {
  OtherStore store;
  std::barrier together(2);
  test::run_ranks(2, [&](int number) {
    Rank rank(store, number, 2, {.timeout_ms = 25'000});
    ASSERT_NE(rank.group(), nullptr) << rank.why();
    if (number == 1) {  // rank 0 hosts the store, and waits for who is there
      Endless endless(rank);
      const auto start = Clock::now();
      auto patient =
          std::async(std::launch::async, [&] { argosy_group_close(rank.group(), 25'000); });
      auto others = std::async(std::launch::async, [&] { return endless.wait(); });
      const std::deque<Operation> accepted = wait_until_closing(rank);
      argosy_group_close(rank.group(), 0);
      EXPECT_NE(others.get().code, ARGOSY_OK);
      patient.get();
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(12));
    }
    together.arrive_and_wait();
  });
}

TEST(AbiEnding, AllGroupsOfAProcessAreClosedAtOnce) {
  OtherStore first, second;
  std::barrier together(2);
  test::run_ranks(2, [&](int number) {
    std::array<Rank, 2> ranks{Rank(first, number, 2), Rank(second, number, 2)};
    together.arrive_and_wait();
    if (number == 0) {
      argosy_close_all(1'000);
    }
    together.arrive_and_wait();
    for (Rank& rank : ranks) {
      Operation operation([](ArgosyHere*) { return int{ARGOSY_OK}; });
      EXPECT_EQ(operation.submit(rank), ARGOSY_MISUSED);
      EXPECT_THAT(rank.why(), HasSubstr("was destroyed"));
    }
  });
}

TEST(AbiEnding, AnOperationMayCloseAllOtherGroups) {
  OtherStore store;
  Rank one(store, 0, 1), other(store, 0, 1);
  Operation operation([](ArgosyHere* here) {
    argosy_close_all(1'000);
    const ArgosyStep barrier = step(ARGOSY_BARRIER, nullptr, nullptr, 0);
    return argosy_step(here, &barrier);
  });
  EXPECT_EQ(operation.submit(one), ARGOSY_OK) << one.why();
  EXPECT_EQ(operation.wait().code, ARGOSY_OK);
  Operation refused([](ArgosyHere*) { return int{ARGOSY_OK}; });
  EXPECT_EQ(refused.submit(other), ARGOSY_MISUSED);
  Operation accepted([](ArgosyHere*) { return int{ARGOSY_OK}; });
  EXPECT_EQ(accepted.submit(one), ARGOSY_OK);
}

/// What frees its group when it ends, in the thread in which that is told.
class Last final {
 public:
  explicit Last(Rank& rank) : rank_(rank) {}

  static int run(void* /*self*/, ArgosyHere* /*here*/) { return ARGOSY_OK; }
  static void end(void* self, const ArgosyEnd* /*end*/) {
    argosy_group_free(static_cast<Last*>(self)->rank_.release());
    static_cast<Last*>(self)->freed_.set_value();
  }
  void wait() { freed_.get_future().get(); }

 private:
  Rank& rank_;
  std::promise<void> freed_;
};

TEST(AbiEnding, AnOperationMayFreeItsGroup) {
  for (const int waits : {0, 1}) {
    OtherStore store;
    test::run_ranks(2, [&](int number) {
      Rank rank(store, number, 2);
      ASSERT_NE(rank.group(), nullptr) << rank.why();
      Last last(rank);
      const ArgosyOperation operation = operation_of(Last::run, Last::end, &last, waits);
      EXPECT_EQ(argosy_submit(rank.group(), &operation, rank.text()), ARGOSY_OK);
      last.wait();
    });
  }
}

TEST(AbiEnding, AMessageMayFreeItsGroup) {
  OtherStore store;
  test::run_ranks(2, [&](int number) {
    Rank rank(store, number, 2);
    ASSERT_NE(rank.group(), nullptr) << rank.why();
    Last last(rank);
    int value = 5;
    const ArgosyTransfer transfer{.receives = number,
                                  .data = &value,
                                  .bytes = sizeof value,
                                  .peer = 1 - number,
                                  .tag = 0,
                                  .timeout_ms = 0,
                                  .then = Last::end,
                                  .context = &last};
    EXPECT_EQ(argosy_transfer(rank.group(), &transfer, rank.text()), ARGOSY_OK);
    last.wait();
  });
}

/// The others see that it has left: it is closed, and not only forgotten.
TEST(AbiEnding, AnOperationMayCloseItsGroup) {
  with_ranks(2, [](Rank& rank, int me) {
    if (me == 0) {
      Operation operation([&](ArgosyHere*) {
        const auto start = Clock::now();
        argosy_group_close(rank.group(), 5'000);
        EXPECT_LT(Clock::now() - start, std::chrono::seconds(3)) << "it waits for itself";
        return int{ARGOSY_OK};
      });
      ASSERT_EQ(operation.submit(rank), ARGOSY_OK);
      EXPECT_EQ(operation.wait().code, ARGOSY_OK);
      return;
    }
    int32_t value = 1;
    const Ended ended = sum(rank, value);
    EXPECT_NE(ended.code, ARGOSY_OK);
    EXPECT_THAT(ended.peers, ElementsAre(0)) << ended.message;
  });
}

/// What a child does with its parent's group: 0 where that refuses it, and goes.
int leave_alone(Rank& rank) {
  int32_t value = 1;
  const ArgosyStep sum = step(ARGOSY_ALL_REDUCE, nullptr, &value, 1);
  Operation operation([&](ArgosyHere* here) { return argosy_step(here, &sum); });
  if (operation.submit(rank) != ARGOSY_MISUSED ||
      rank.why().find("forked from it") == std::string::npos) {
    return 1;
  }
  const ArgosyTransfer transfer{.receives = 0,
                                .data = &value,
                                .bytes = sizeof value,
                                .peer = 1,
                                .tag = 0,
                                .timeout_ms = 0,
                                .then = Operation::end,
                                .context = &operation};
  const int before = argosy_transfer(rank.group(), &transfer, rank.text());
  argosy_group_close(rank.group(), 1'000);
  const int after = argosy_transfer(rank.group(), &transfer, rank.text());
  argosy_group_free(rank.release());
  argosy_close_all(1'000);
  return before == ARGOSY_MISUSED && after == ARGOSY_MISUSED ? 0 : 2;
}

TEST(AbiEnding, AForkedChildLeavesTheGroupAloneAndEnds) {
  with_ranks(2, [](Rank& rank, int me) {
    int32_t value = 1;
    EXPECT_EQ(sum(rank, value, false).code, ARGOSY_OK);  // in the group's thread, which waits now
    if (me == 0) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::_exit(leave_alone(rank));
      }
      int status = -1;
      const auto until = Clock::now() + std::chrono::seconds(20);
      while (::waitpid(child, &status, WNOHANG) == 0 && Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      if (status == -1) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
      }
      EXPECT_EQ(status, 0) << "-1: it hangs";
    }
    EXPECT_EQ(sum(rank, value, false).code, ARGOSY_OK);
    EXPECT_EQ(value, 4);
  });
}

/// Who hears of an end needs further operations, and waits for them: as PyTorch's PowerSGD does.
TEST(AbiEnding, TheEndOfAnOperationMayWaitForAnother) {
  with_ranks(2, [](Rank& rank, int /*me*/) {
    struct Chain {
      Rank& rank;
      std::array<int32_t, 3> values{1, 1, 1};
      std::promise<void> over{};

      static int nothing(void* /*self*/, ArgosyHere* /*here*/) { return ARGOSY_OK; }
      static void end(void* self, const ArgosyEnd* /*end*/) {
        auto& chain = *static_cast<Chain*>(self);
        EXPECT_EQ(sum(chain.rank, chain.values[0], false).code, ARGOSY_OK);
        EXPECT_EQ(sum(chain.rank, chain.values[1], true).code, ARGOSY_OK);
        chain.over.set_value();
      }
    };
    for (const int waits : {0, 1}) {
      Chain chain{.rank = rank};
      const ArgosyOperation operation = operation_of(Chain::nothing, Chain::end, &chain, waits);
      EXPECT_EQ(argosy_submit(rank.group(), &operation, rank.text()), ARGOSY_OK);
      EXPECT_EQ(sum(rank, chain.values[2], waits == 0).code, ARGOSY_OK);
      chain.over.get_future().wait();
      EXPECT_THAT(chain.values, ElementsAre(2, 2, 2));
    }
  });
}

TEST(AbiEnding, RanksAreNamedByTheirNumbersInTheJobToo) {
  constexpr std::array<int, 3> kWorld{4, 7, 9};
  OtherStore store;
  std::barrier together(3);
  test::run_ranks(3, [&](int number) {
    Rank rank(store, number, 3, {.name = "group 1", .world_ranks = kWorld.data()});
    ASSERT_NE(rank.group(), nullptr) << rank.why();
    int32_t value = 1;
    EXPECT_EQ(sum(rank, value).code, ARGOSY_OK);
    EXPECT_EQ(value, 3);
    if (number < 2) {
      const ArgosyStep barrier = step(ARGOSY_BARRIER, nullptr, nullptr, 0);
      Operation operation([&](ArgosyHere* here) { return argosy_step(here, &barrier); });
      ASSERT_EQ(operation.submit(rank, true, 300), ARGOSY_OK);
      const Ended ended = operation.wait();
      EXPECT_THAT(ended.peers, ElementsAre(2)) << ended.message;
      EXPECT_THAT(ended.message, HasSubstr("rank 2 (world rank 9)"));
    }
    argosy_group_record(rank.group(), rank.text());
    EXPECT_THAT(rank.why(),
                HasSubstr("\"rank\": " + std::to_string(kWorld[static_cast<size_t>(number)])));
    together.arrive_and_wait();
  });
}

}  // namespace
}  // namespace argosy::abi
