#include "argosy/transport/in_process.h"

#include <numeric>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/run_ranks.h"

// What is particular to the in-process transport; tests/conformance has what all share.
namespace argosy::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(InProcess, AllReducesOverThreads) {
  auto ranks = in_process_transports(3);
  test::run_ranks(3, [&](int rank) {
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), static_cast<float>(rank));
    ranks[static_cast<size_t>(rank)]->all_reduce(
        values.data(), 1000, DType::kF32, ReduceOp::kSum, 10s);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], 3.0F * static_cast<float>(i) + 3.0F);
    }
  });
}

TEST(InProcess, RefusesDifferentSizesNamingTheRanks) {
  auto ranks = in_process_transports(2);
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    std::vector<float> values(4);
    ranks[static_cast<size_t>(rank)]->all_reduce(
        values.data(), 3 + rank, DType::kF32, ReduceOp::kSum, 10s);
  });
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError");
    EXPECT_THAT(outcome.error,
                HasSubstr("rank 0 called all_reduce of 12 B of f32 (sum) where rank 1 called "
                          "all_reduce of 16 B of f32 (sum)"));
  }
}

TEST(InProcess, RefusesMessagesOfDifferentSizes) {
  auto ranks = in_process_transports(2);
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    char bytes[8] = {};
    auto& transport = *ranks[static_cast<size_t>(rank)];
    (rank == 0 ? transport.send(bytes, 8, 1, 0) : transport.recv(bytes, 4, 0, 0))->wait(10s);
  });
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError");
    EXPECT_THAT(outcome.error, HasSubstr("size differ"));
  }
}

TEST(InProcess, RefusesDifferentCountsOfEqualTotal) {
  auto ranks = in_process_transports(3);
  const auto outcomes = test::try_run_ranks(3, [&](int rank) {
    std::vector<float> mine(4), all(8);
    const std::vector<int64_t> counts =
        rank == 2 ? std::vector<int64_t>{1, 3, 4} : std::vector<int64_t>{3, 1, 4};
    ranks[static_cast<size_t>(rank)]->all_gather_v(
        mine.data(), all.data(), counts, DType::kF32, 10s);
  });
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(
        outcome.error,
        HasSubstr("rank 0 called all_gather_v of 32 B of f32 where rank 2 called all_gather_v "
                  "of 32 B of f32, in other parts: 12 + 4 + 16 B and 4 + 12 + 16 B"));
  }
}

/// The memory of a message is the receiver's own again as soon as wait() threw.
TEST(InProcess, NothingIsWrittenAfterAFailedWait) {
  auto ranks = in_process_transports(2);
  char byte = 0;
  const auto late = ranks[0]->recv(&byte, 1, 1, 5);
  EXPECT_THROW(late->wait(1ms), TimeoutError);
  EXPECT_THROW(late->wait(10s), TimeoutError) << "the same again, at once";
  const char sent = 7;
  EXPECT_THROW(ranks[1]->send(&sent, 1, 0, 5)->wait(10s), CommError);
  EXPECT_EQ(byte, 0);
}

TEST(InProcess, NothingIsWrittenToWhoHasLeft) {
  auto ranks = in_process_transports(2);
  char byte = 0;
  const auto pending = ranks[0]->recv(&byte, 1, 1, 5);
  ranks[0]->close();
  const char sent = 7;
  EXPECT_THROW(ranks[1]->send(&sent, 1, 0, 5)->wait(10s), CommError);
  EXPECT_EQ(byte, 0);
}

TEST(InProcess, NamesALostRank) {
  auto ranks = in_process_transports(5);
  const auto outcomes = test::try_run_ranks(5, [&](int rank) {
    auto transport = std::move(ranks[static_cast<size_t>(rank)]);
    transport->barrier(10s);
    if (rank == 3) {
      lose(std::move(transport));
      return;
    }
    transport->barrier(10s);
  });
  for (const int rank : {0, 1, 2, 4}) {
    const auto& outcome = outcomes[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.error_type, "argosy::CommError");
    EXPECT_THAT(outcome.peers, ElementsAre(3));
    EXPECT_THAT(outcome.error, HasSubstr("rank 3 is gone")) << describe(outcome);
  }
}

TEST(InProcess, CloseWakesWhoWaits) {
  auto ranks = in_process_transports(2);
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    if (rank == 0) {
      ranks[0]->barrier(10s);
    } else {
      ranks[0]->close();
    }
  });
  EXPECT_EQ(outcomes[0].error_type, "argosy::CommError");
  EXPECT_THAT(outcomes[0].error, HasSubstr("closed"));
}

}  // namespace
}  // namespace argosy::transport
