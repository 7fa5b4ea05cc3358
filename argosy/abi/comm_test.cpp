#include "argosy/abi/comm.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_ranks.h"

namespace argosy::abi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The store of another runtime.
class OtherStore final {
 public:
  static int set(void* self, const char* key, const char* value, ArgosyText* /*why*/) {
    auto& store = *static_cast<OtherStore*>(self);
    const std::lock_guard lock(store.mutex_);
    store.values_[key] = value;
    store.changed_.notify_all();
    return ARGOSY_OK;
  }
  static int get(
      void* self, const char* key, int64_t timeout_ms, ArgosyText* value, ArgosyText* why) {
    auto& store = *static_cast<OtherStore*>(self);
    std::unique_lock lock(store.mutex_);
    if (!store.changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] {
          return store.values_.contains(key);
        })) {
      const std::string text = std::string(key) + " did not come";
      argosy_text_set(why, text.data(), text.size());
      return ARGOSY_TIMED_OUT;
    }
    argosy_text_set(value, store.values_[key].data(), store.values_[key].size());
    return ARGOSY_OK;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// A rank's end of a group, made as another runtime would.
class Rank final {
 public:
  Rank(OtherStore& store, int rank, int size, int64_t timeout_ms = 20'000)
      : why_(argosy_text_new()) {
    const ArgosyMeeting meeting{.name = "theirs",
                                .rank = rank,
                                .size = size,
                                .timeout_ms = timeout_ms,
                                .towards = "127.0.0.1",
                                .store = &store,
                                .set = OtherStore::set,
                                .get = OtherStore::get};
    group_ = argosy_group_make(&meeting, &code, why_);
  }
  ~Rank() {
    argosy_group_free(group_);
    argosy_text_free(why_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] ArgosyGroup* group() const { return group_; }
  [[nodiscard]] std::string why() const { return argosy_text_get(why_); }
  [[nodiscard]] ArgosyText* text() { return why_; }

  ArgosyCode code = ARGOSY_OK;

 private:
  ArgosyText* why_;
  ArgosyGroup* group_ = nullptr;
};

struct Ended {
  int code = -1;
  std::string message{};
  std::vector<int> peers{};
  int source = -1;
};

/// One operation, from its submission to what its end says.
class Operation final {
 public:
  using Body = std::function<int(ArgosyHere*)>;

  explicit Operation(Body body) : body_(std::move(body)) {}

  [[nodiscard]] int submit(Rank& rank, bool waits = false, int64_t timeout_ms = 0) {
    const ArgosyOperation operation{.name = "theirs",
                                    .type = "f32",
                                    .elements = 3,
                                    .bytes = 12,
                                    .timeout_ms = timeout_ms,
                                    .waits = waits ? 1 : 0,
                                    .body = run,
                                    .then = end,
                                    .context = this};
    return argosy_submit(rank.group(), &operation, rank.text());
  }
  [[nodiscard]] Ended wait() { return ended_.get_future().get(); }
  static void end(void* self, const ArgosyEnd* end) {
    static_cast<Operation*>(self)->thread = std::this_thread::get_id();
    static_cast<Operation*>(self)->ended_.set_value(
        {.code = end->code,
         .message = end->message == nullptr ? "" : end->message,
         .peers = {end->peers, end->peers + end->peer_count},
         .source = end->source});
  }

  std::thread::id thread{};

 private:
  static int run(void* self, ArgosyHere* here) {
    return static_cast<Operation*>(self)->body_(here);
  }

  Body body_;
  std::promise<Ended> ended_;
};

ArgosyStep step(ArgosyStepKind kind, const void* input, void* output, int64_t count) {
  return {.kind = kind,
          .type = ARGOSY_I32,
          .reduction = ARGOSY_SUM,
          .root = 1,
          .input = input,
          .output = output,
          .count = count,
          .send_counts = nullptr,
          .receive_counts = nullptr};
}

void with_ranks(int size, const std::function<void(Rank&, int)>& body) {
  OtherStore store;
  test::run_ranks(size, [&](int number) {
    Rank rank(store, number, size);
    ASSERT_NE(rank.group(), nullptr) << rank.why();
    body(rank, number);
    argosy_group_close(rank.group(), 5'000);
  });
}

TEST(Abi, EachKindOfStepDoesWhatItIsNamedFor) {
  with_ranks(3, [](Rank& rank, int me) {
    std::array<int32_t, 3> sum{me, 1, 2}, reduced{me, me, me}, told{me, me, me}, all{};
    std::array<int32_t, 3> scattered{10, 20, 30}, gathered{-1, -1, -1}, exchanged{};
    std::array<int32_t, 6> uneven{}, sent{};
    sent.fill(me);
    int32_t one = me * 10, mine = -1, part = -1;
    const std::array<int64_t, 3> counts{1, 2, 3};
    const std::vector<int32_t> several(static_cast<size_t>(me + 1), me);
    const std::array<int64_t, 3> sends{1, 2, 3};
    const std::array<int64_t, 3> receives{me + 1, me + 1, me + 1};
    std::vector<int32_t> got(static_cast<size_t>(3 * (me + 1)), -1);
    Operation operation([&](ArgosyHere* here) {
      ArgosyStep of_parts = step(ARGOSY_ALL_GATHER_V, several.data(), uneven.data(), 0);
      of_parts.receive_counts = counts.data();
      ArgosyStep exchange = step(ARGOSY_ALL_TO_ALL_V, sent.data(), got.data(), 0);
      exchange.send_counts = sends.data();
      exchange.receive_counts = receives.data();
      for (const ArgosyStep& next : {step(ARGOSY_ALL_REDUCE, nullptr, sum.data(), 3),
                                     step(ARGOSY_REDUCE, nullptr, reduced.data(), 3),
                                     step(ARGOSY_BROADCAST, nullptr, told.data(), 3),
                                     step(ARGOSY_ALL_GATHER, &one, all.data(), 1),
                                     of_parts,
                                     step(ARGOSY_GATHER, &one, gathered.data(), 1),
                                     step(ARGOSY_SCATTER, scattered.data(), &mine, 1),
                                     step(ARGOSY_REDUCE_SCATTER, scattered.data(), &part, 1),
                                     step(ARGOSY_ALL_TO_ALL, all.data(), exchanged.data(), 1),
                                     exchange,
                                     step(ARGOSY_BARRIER, nullptr, nullptr, 0)}) {
        if (const int code = argosy_step(here, &next); code != ARGOSY_OK) {
          return code;
        }
      }
      return int{ARGOSY_OK};
    });
    ASSERT_EQ(operation.submit(rank), ARGOSY_OK);
    const Ended ended = operation.wait();
    ASSERT_EQ(ended.code, ARGOSY_OK) << ended.message;
    EXPECT_NE(operation.thread, std::this_thread::get_id());
    EXPECT_THAT(sum, ElementsAre(3, 3, 6));
    if (me == 1) {
      EXPECT_THAT(reduced, ElementsAre(3, 3, 3));
      EXPECT_THAT(gathered, ElementsAre(0, 10, 20));
    } else {
      EXPECT_THAT(reduced, ElementsAre(me, me, me));
    }
    EXPECT_THAT(told, ElementsAre(1, 1, 1));
    EXPECT_THAT(all, ElementsAre(0, 10, 20));
    EXPECT_THAT(uneven, ElementsAre(0, 1, 1, 2, 2, 2));
    EXPECT_EQ(mine, 10 * (me + 1));
    EXPECT_EQ(part, 30 * (me + 1));
    EXPECT_THAT(exchanged, ElementsAre(10 * me, 10 * me, 10 * me));
    for (int from = 0; from < 3; ++from) {
      EXPECT_EQ(got[static_cast<size_t>(from * (me + 1))], from);
    }
  });
}

TEST(Abi, AnOperationThatWaitsRunsInTheCallersThread) {
  with_ranks(2, [](Rank& rank, int me) {
    int32_t value = me + 1;
    const ArgosyStep sum = step(ARGOSY_ALL_REDUCE, nullptr, &value, 1);
    Operation operation([&](ArgosyHere* here) { return argosy_step(here, &sum); });
    ASSERT_EQ(operation.submit(rank, true), ARGOSY_OK);
    EXPECT_EQ(value, 3) << "before its end is asked for";
    EXPECT_EQ(operation.thread, std::this_thread::get_id());
    EXPECT_EQ(operation.wait().code, ARGOSY_OK);
  });
}

TEST(Abi, WhoLeavesIsNamed) {
  with_ranks(3, [](Rank& rank, int me) {
    if (me == 2) {
      return;  // it leaves, and does not come
    }
    const ArgosyStep barrier = step(ARGOSY_BARRIER, nullptr, nullptr, 0);
    Operation operation([&](ArgosyHere* here) { return argosy_step(here, &barrier); });
    ASSERT_EQ(operation.submit(rank, true, 300), ARGOSY_OK);
    const Ended ended = operation.wait();
    EXPECT_NE(ended.code, ARGOSY_OK);
    EXPECT_THAT(ended.peers, ElementsAre(2)) << ended.message;
    EXPECT_THAT(ended.message, HasSubstr("rank 2"));
    Operation next([&](ArgosyHere* here) { return argosy_step(here, &barrier); });
    ASSERT_EQ(next.submit(rank), ARGOSY_OK);
    EXPECT_EQ(next.wait().code, ARGOSY_FAILED) << "the group is broken";
  });
}

TEST(Abi, WhatABodyFailsByIsTold) {
  with_ranks(2, [](Rank& rank, int /*me*/) {
    Operation operation([](ArgosyHere* here) {
      argosy_fail(here, "there is no memory for the result");
      return int{ARGOSY_FAILED};
    });
    ASSERT_EQ(operation.submit(rank), ARGOSY_OK);
    const Ended ended = operation.wait();
    EXPECT_EQ(ended.code, ARGOSY_FAILED);
    EXPECT_THAT(ended.message, HasSubstr("there is no memory for the result"));
  });
}

TEST(Abi, AStepWithoutTheCountsThatItNeedsFails) {
  for (const ArgosyStepKind kind : {ARGOSY_ALL_TO_ALL_V, ARGOSY_ALL_GATHER_V}) {
    with_ranks(2, [kind](Rank& rank, int /*me*/) {
      int32_t sent = 0, got = 0;
      const ArgosyStep uncounted = step(kind, &sent, &got, 0);
      Operation operation([&](ArgosyHere* here) { return argosy_step(here, &uncounted); });
      ASSERT_EQ(operation.submit(rank, true), ARGOSY_OK);
      const Ended ended = operation.wait();
      EXPECT_EQ(ended.code, ARGOSY_MISUSED);
      EXPECT_THAT(ended.message, HasSubstr("a count for each rank is needed"));
    });
  }
}

TEST(Abi, MessagesTellWhoSentThem) {
  with_ranks(3, [](Rank& rank, int me) {
    const auto transfer = [&](Operation& operation, int* value, int peer, bool receives) {
      const ArgosyTransfer wanted{.receives = receives ? 1 : 0,
                                  .data = value,
                                  .bytes = sizeof *value,
                                  .peer = peer,
                                  .tag = 4,
                                  .timeout_ms = 0,
                                  .then = Operation::end,
                                  .context = &operation};
      return argosy_transfer(rank.group(), &wanted, rank.text());
    };
    if (me != 0) {
      int value = 100 + me;
      Operation sending({});
      ASSERT_EQ(transfer(sending, &value, 0, false), ARGOSY_OK);
      EXPECT_EQ(sending.wait().code, ARGOSY_OK);
      return;
    }
    for (int i = 1; i < 3; ++i) {
      int value = 0;
      Operation receiving({});
      ASSERT_EQ(transfer(receiving, &value, -1, true), ARGOSY_OK);
      const Ended ended = receiving.wait();
      ASSERT_EQ(ended.code, ARGOSY_OK) << ended.message;
      EXPECT_EQ(value, 100 + ended.source);
    }
    int value = 0;
    Operation never({});
    EXPECT_EQ(transfer(never, &value, 7, true), ARGOSY_OK);
    EXPECT_THAT(never.wait().message, HasSubstr("7"));
  });
}

TEST(Abi, AClosedGroupAcceptsNothing) {
  with_ranks(2, [](Rank& rank, int /*me*/) {
    argosy_group_close(rank.group(), 1'000);
    Operation operation([](ArgosyHere*) { return int{ARGOSY_OK}; });
    EXPECT_EQ(operation.submit(rank), ARGOSY_MISUSED);
    EXPECT_THAT(rank.why(), HasSubstr("was destroyed"));
  });
}

TEST(Abi, WhoWaitsInVainForTheFirstRankHearsOfIt) {
  OtherStore store;
  const Rank rank(store, 1, 2, 200);
  EXPECT_EQ(rank.group(), nullptr);
  EXPECT_EQ(rank.code, ARGOSY_TIMED_OUT);
  EXPECT_THAT(rank.why(), HasSubstr("rank 0 of group \"theirs\" did not come"));
}

TEST(Abi, TheFirstRankHearsWhoDoesNotCome) {
  OtherStore store;
  const Rank rank(store, 0, 3, 300);
  EXPECT_EQ(rank.group(), nullptr);
  EXPECT_EQ(rank.code, ARGOSY_TIMED_OUT);
  EXPECT_THAT(rank.why(), HasSubstr("1, 2"));
}

/// Groups of which this process is the first rank share one store, and have parts of their own.
TEST(Abi, GroupsThatLiveAtOnceDoNotMeetEachOther) {
  OtherStore first, second;
  test::run_ranks(2, [&](int number) {
    Rank one(first, number, 2);
    Rank other(second, 1 - number, 2);
    ASSERT_NE(other.group(), nullptr) << other.why();
    for (Rank* rank : {&one, &other}) {
      int32_t value = 1;
      const ArgosyStep sum = step(ARGOSY_ALL_REDUCE, nullptr, &value, 1);
      Operation operation([&](ArgosyHere* here) { return argosy_step(here, &sum); });
      ASSERT_EQ(operation.submit(*rank, true), ARGOSY_OK);
      EXPECT_EQ(value, 2);
      EXPECT_EQ(operation.wait().code, ARGOSY_OK);
    }
    argosy_group_close(one.group(), 5'000);
    argosy_group_close(other.group(), 5'000);
  });
}

TEST(Abi, TheRecordHasItsOperations) {
  with_ranks(1, [](Rank& rank, int /*me*/) {
    Operation operation([](ArgosyHere*) { return int{ARGOSY_OK}; });
    ASSERT_EQ(operation.submit(rank), ARGOSY_OK);
    EXPECT_EQ(operation.wait().code, ARGOSY_OK);
    argosy_group_record(rank.group(), rank.text());
    EXPECT_THAT(rank.why(), HasSubstr("\"op\": \"theirs\""));
  });
}

}  // namespace
}  // namespace argosy::abi
