#include "argosy/train/leaving.h"

#include <array>
#include <atomic>
#include <optional>

#include <gtest/gtest.h>

#include "argosy/fleet/fleet.h"
#include "argosy/train/train_test_support.h"

namespace argosy::train::detail {
namespace {

using testing::run_job;

struct Passed {
  int64_t batches = 0;
  bool left = false;
};

/// A pass over `batches` of this rank, which is asked to leave in batch `asked_in`.
Passed pass(std::optional<int64_t> known, int64_t batches, std::optional<int64_t> asked_in) {
  Passed passed;
  bool asked = false;
  Leaving leaving([&] { return asked; }, known, fleet::group());
  bool left = false;
  while (!left && passed.batches < batches) {
    asked = asked || passed.batches == asked_in;
    left = leaving.after(passed.batches++);
  }
  passed.left = leaving.at_end();
  return passed;
}

TEST(Leaving, AloneAfterTheBatchAtHand) {
  run_job(1, [](int) {
    const Passed passed = pass(20, 20, 3);
    EXPECT_TRUE(passed.left);
    EXPECT_EQ(passed.batches, 4);
  });
}

TEST(Leaving, AllRanksInTheSameRoundWhoeverWasAsked) {
  constexpr std::array<int64_t, 3> kBatches{40, 9, 3};
  for (int asked = 0; asked < 3; ++asked) {
    run_job(3, [&](int rank) {
      const auto mine = kBatches.at(static_cast<std::size_t>(rank));
      const Passed passed =
          pass(mine, mine, rank == asked ? std::optional<int64_t>(2) : std::nullopt);
      EXPECT_TRUE(passed.left) << "rank " << rank;
      EXPECT_EQ(passed.batches, std::min<int64_t>(mine, 8)) << "rank " << rank;
    });
  }
}

TEST(Leaving, NobodyIsAskedAndAllHaveAllBatches) {
  constexpr std::array<int64_t, 3> kBatches{40, 9, 0};
  run_job(3, [&](int rank) {
    const auto mine = kBatches.at(static_cast<std::size_t>(rank));
    const Passed passed = pass(mine, mine, std::nullopt);
    EXPECT_FALSE(passed.left);
    EXPECT_EQ(passed.batches, mine);
  });
}

TEST(Leaving, MoreBatchesThanWereSaidLeaveNobodyWaiting) {
  run_job(2, [](int rank) {
    const int64_t mine = rank == 0 ? 40 : 9;
    const Passed passed = pass(9, mine, std::nullopt);
    EXPECT_FALSE(passed.left);
    EXPECT_EQ(passed.batches, mine);
  });
}

TEST(Leaving, NotWhereARankDoesNotKnowItsBatches) {
  run_job(2, [](int rank) {
    const Passed passed = pass(rank == 0 ? std::nullopt : std::optional<int64_t>(20), 20, 2);
    EXPECT_FALSE(passed.left);
    EXPECT_EQ(passed.batches, 20);
  });
}

}  // namespace
}  // namespace argosy::train::detail
