#include <array>
#include <string>
#include <thread>
#include <vector>

#include "argosy/abi/comm_test_support.h"

namespace argosy::abi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

/// What hears of its end takes its time.
struct Slow {
  int code;
  int heard = 0;

  static int run(void* self, ArgosyHere* /*here*/) { return static_cast<Slow*>(self)->code; }
  static void end(void* self, const ArgosyEnd* /*end*/) {
    for (int i = 0; i < 100; ++i) {
      std::this_thread::yield();
    }
    ++static_cast<Slow*>(self)->heard;
  }
};

/// Behind another one, so that the group's thread runs it.
void expect_that_it_ends_before_it_returns(Rank& rank, int code) {
  std::promise<void> go;
  Operation before([&](ArgosyHere*) {
    go.get_future().wait();
    return int{ARGOSY_OK};
  });
  ASSERT_EQ(before.submit(rank), ARGOSY_OK);
  const std::jthread starter([&] { go.set_value(); });
  Slow slow{.code = code};
  const ArgosyOperation operation = operation_of(Slow::run, Slow::end, &slow);
  EXPECT_EQ(argosy_submit(rank.group(), &operation, rank.text()), ARGOSY_OK) << "accepted";
  EXPECT_EQ(slow.heard, 1);
  EXPECT_EQ(before.wait().code, ARGOSY_OK);
}

TEST(Abi, AnOperationThatWaitsForItsTurnReturnsAfterItsEnd) {
  with_ranks(2, [](Rank& rank, int /*me*/) {
    for (int i = 0; i < 200; ++i) {
      expect_that_it_ends_before_it_returns(rank, ARGOSY_OK);
    }
  });
  for (int i = 0; i < 20; ++i) {  // each breaks its group
    with_ranks(2, [](Rank& rank, int /*me*/) {
      expect_that_it_ends_before_it_returns(rank, ARGOSY_FAILED);
    });
  }
}

TEST(Abi, SumsLieInMemoryThatAllShare) {
  constexpr size_t kPart = 1 << 20;
  with_ranks(2, [](Rank& rank, int me) {
    ArgosyBlock* block = nullptr;
    Operation share([&](ArgosyHere* here) { return argosy_share(here, 2 * kPart, &block); });
    ASSERT_EQ(share.submit(rank, true), ARGOSY_OK);
    ASSERT_EQ(share.wait().code, ARGOSY_OK);
    ASSERT_NE(block, nullptr);
    auto* const parts = static_cast<std::byte*>(argosy_block_data(block));
    const auto part = [&](int of) {  // its last element
      return reinterpret_cast<int32_t*>(parts + static_cast<size_t>(of + 1) * kPart) - 1;
    };
    EXPECT_EQ(*part(me), 0);
    *part(me) = me + 1;
    const ArgosyStep sum = step(ARGOSY_ALL_REDUCE, nullptr, part(me), 1);
    const ArgosyStep barrier = step(ARGOSY_BARRIER, nullptr, nullptr, 0);
    Operation add([&](ArgosyHere* here) {
      const int code = argosy_step(here, &sum);
      return code == ARGOSY_OK ? argosy_step(here, &barrier) : code;
    });
    ASSERT_EQ(add.submit(rank, true), ARGOSY_OK);
    EXPECT_EQ(*part(0), 3);
    EXPECT_EQ(*part(1), 3) << "what the other has, too";
    argosy_group_close(rank.group(), 5'000);
    EXPECT_EQ(*part(me), 3) << "the memory outlives the group";
    argosy_block_free(block);
  });
}

TEST(Abi, AGroupOfOneSharesNothing) {
  with_ranks(1, [](Rank& rank, int /*me*/) {
    ArgosyBlock* block = nullptr;
    Operation share([&](ArgosyHere* here) { return argosy_share(here, 4096, &block); });
    ASSERT_EQ(share.submit(rank, true), ARGOSY_OK);
    EXPECT_EQ(share.wait().code, ARGOSY_OK);
    EXPECT_EQ(block, nullptr);
  });
}

TEST(Abi, KnowsWhichReductionsThereAre) {
  EXPECT_NE(argosy_is_defined(ARGOSY_BAND, ARGOSY_I64), 0);
  EXPECT_EQ(argosy_is_defined(ARGOSY_BAND, ARGOSY_F32), 0);
  EXPECT_EQ(argosy_is_defined(ARGOSY_AVG, ARGOSY_BOOL), 0);
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

/// Otherwise it would write past the end of what it receives.
TEST(Abi, AGroupOfOneSendsItselfOnlyWhatItReceives) {
  const auto exchange = [](int64_t sends, int64_t receives, std::array<int32_t, 2>& got) {
    const std::array<int32_t, 4> sent{1, 2, 3, 4};
    Ended ended;
    with_ranks(1, [&](Rank& rank, int /*me*/) {
      ArgosyStep all_to_all = step(ARGOSY_ALL_TO_ALL_V, sent.data(), got.data(), 0);
      all_to_all.send_counts = &sends;
      all_to_all.receive_counts = &receives;
      Operation operation([&](ArgosyHere* here) { return argosy_step(here, &all_to_all); });
      ASSERT_EQ(operation.submit(rank, true), ARGOSY_OK);
      ended = operation.wait();
    });
    return ended.code;
  };
  std::array<int32_t, 2> got{-1, -1};
  EXPECT_EQ(exchange(1, 0, got), ARGOSY_MISUSED);
  EXPECT_EQ(exchange(-1, -1, got), ARGOSY_MISUSED);
  EXPECT_THAT(got, ElementsAre(-1, -1));
  EXPECT_EQ(exchange(2, 2, got), ARGOSY_OK);
  EXPECT_THAT(got, ElementsAre(1, 2));
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
