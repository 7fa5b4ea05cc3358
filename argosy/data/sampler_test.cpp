#include "argosy/data/sampler.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/data/batch_sampler.h"

#include "tests/support/error_text.h"

namespace argosy::data {
namespace {

using testing::ElementsAre;
using Batches = std::vector<std::vector<int64_t>>;

Batches to_lists(const BatchPlan& plan) {
  Batches lists;
  for (int64_t b = 0; b < plan.size(); ++b) {
    lists.emplace_back(plan[b].begin(), plan[b].end());
  }
  return lists;
}

Batches iterate(BatchSampler& sampler) {
  Batches lists;
  for (const std::span<const int64_t> batch : sampler) {
    lists.emplace_back(batch.begin(), batch.end());
  }
  return lists;
}

TEST(BatchSampler, CutsKeepsOrDropsTheShortLastBatch) {
  EXPECT_EQ(to_lists(BatchSampler(SequenceSampler(5), {.batch_size = 2}).plan(0)),
            (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(
      to_lists(BatchSampler(SequenceSampler(5), {.batch_size = 2, .drop_last = true}).plan(0)),
      (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(to_lists(BatchSampler(SequenceSampler(4), {.batch_size = 2}).plan(0)),
            (Batches{{0, 1}, {2, 3}}));
}

TEST(BatchSampler, SizesOfNothingAndOfLessThanABatch) {
  EXPECT_EQ(BatchSampler(SequenceSampler(0), {.batch_size = 2}).size(), 0);
  EXPECT_EQ(BatchSampler(SequenceSampler(1), {.batch_size = 2}).size(), 1);
  BatchSampler none(SequenceSampler(1), {.batch_size = 2, .drop_last = true});
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(iterate(none).empty());
  EXPECT_EQ(none.epoch(), 1);  // an empty epoch is an epoch too
}

TEST(BatchSampler, CopiesShareTheEpochAlsoWithTheInnerSampler) {
  RandomSampler inner(10, {.seed = 1});
  BatchSampler outer(inner, {.batch_size = 10});
  BatchSampler copy = outer;
  inner.set_epoch(4);
  EXPECT_EQ(copy.epoch(), 4);
  EXPECT_EQ(iterate(copy).at(0), inner.order(4));
  EXPECT_EQ(inner.epoch(), 5);
}

TEST(BatchSampler, OnesOwnBatchesOfAnySize) {
  BatchSampler sampler(2, [](int64_t epoch) {
    BatchPlan plan;
    plan.add(std::vector<int64_t>{epoch});
    plan.add(std::vector<int64_t>{7, 8, 9});
    return plan;
  });
  EXPECT_EQ(iterate(sampler), (Batches{{0}, {7, 8, 9}}));
  EXPECT_EQ(iterate(sampler), (Batches{{1}, {7, 8, 9}}));
}

TEST(BatchSampler, ResumesFromEveryPosition) {
  const auto make = [] {
    return DistributedBatchSampler(23, {.batch_size = 3, .num_replicas = 2, .shuffle = true});
  };
  DistributedBatchSampler whole = make();
  whole.set_epoch(5);
  const Batches fifth = iterate(whole);
  const Batches sixth = iterate(whole);
  for (int64_t taken = 0; taken <= whole.size(); ++taken) {
    DistributedBatchSampler first = make();
    first.set_epoch(5);
    int64_t count = 0;
    if (taken > 0) {
      for ([[maybe_unused]] const auto batch : first) {
        if (++count == taken) {
          break;
        }
      }
    }
    const SamplerState state = first.state();
    DistributedBatchSampler second = make();
    second.load_state(state);
    if (taken < whole.size()) {
      EXPECT_EQ(state, (SamplerState{5, taken}));
      EXPECT_EQ(iterate(second), Batches(fifth.begin() + taken, fifth.end()));
    } else {
      EXPECT_EQ(state, (SamplerState{6, 0}));
    }
    EXPECT_EQ(iterate(second), sixth);
  }
}

TEST(BatchSampler, ALoopAfterABreakIsTheNextEpoch) {
  DistributedBatchSampler sampler(8, {.batch_size = 2, .shuffle = true});
  for ([[maybe_unused]] const auto batch : sampler) {
    break;
  }
  EXPECT_EQ(sampler.state(), (SamplerState{0, 1}));  // what a checkpoint after the break must say
  EXPECT_EQ(iterate(sampler), to_lists(sampler.plan(1)));
}

TEST(BatchSampler, SetEpochKeepsARestoredPositionOfThatEpochOnly) {
  BatchSampler sampler(SequenceSampler(6), {.batch_size = 2});
  sampler.load_state({3, 2});
  sampler.set_epoch(3);
  EXPECT_EQ(iterate(sampler), (Batches{{4, 5}}));
  sampler.load_state({3, 2});
  sampler.set_epoch(4);
  EXPECT_EQ(iterate(sampler).size(), 3U);
}

TEST(BatchSampler, StateFromAnotherSetIsRefused) {
  BatchSampler sampler(SequenceSampler(6), {.batch_size = 2});
  EXPECT_THAT(test::error_text<UsageError>([&] {
                sampler.load_state({0, 4});
              }),
              testing::HasSubstr("position 4 lies behind the 3 batches of an epoch"));
  EXPECT_THROW(sampler.load_state({-1, 0}), UsageError);
  EXPECT_THROW(sampler.set_epoch(-1), UsageError);
}

TEST(DistributedBatchSampler, ASeedGivesOtherOrdersEqualOnAllRanks) {
  const auto side_by_side = [](uint64_t seed) {
    std::vector<int64_t> all;
    for (int rank = 0; rank < 4; ++rank) {
      const DistributedBatchSampler sampler(
          40, {.batch_size = 5, .num_replicas = 4, .rank = rank, .shuffle = true, .seed = seed});
      const BatchPlan plan = sampler.plan(0);
      all.insert(all.end(), plan.indices().begin(), plan.indices().end());
    }
    return all;
  };
  EXPECT_NE(side_by_side(0), side_by_side(1));
  EXPECT_NE(side_by_side(1), side_by_side(2));
  std::vector<int64_t> sorted = side_by_side(1);
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> expected(40);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(sorted, expected);  // only if all ranks cut the same permutation
}

TEST(DistributedBatchSampler, OptionsThatCannotBeAreNamed) {
  EXPECT_EQ(test::error_text<UsageError>(
                [] { DistributedBatchSampler(8, {.num_replicas = 4, .rank = 4}); }),
            "[data.DistributedBatchSampler] rank must be from 0 to 3 (num_replicas is 4), got 4");
  EXPECT_EQ(test::error_text<UsageError>([] { DistributedBatchSampler(8, {.batch_size = 0}); }),
            "[data.DistributedBatchSampler] batch_size must be positive, got 0");
  EXPECT_EQ(test::error_text<UsageError>([] { DistributedSampler(8, {.num_replicas = 0}); }),
            "[data.DistributedSampler] num_replicas must be positive, got 0");
  EXPECT_EQ(test::error_text<UsageError>([] { RandomSampler sampler(-1); }),
            "[data.Sampler] number of samples must not be negative, got -1");
  const DistributedBatchSampler paddle(8, {.shuffle = true});
  EXPECT_THROW((void)paddle.plan(int64_t{1} << 32), UsageError);
}

TEST(EvaluationSampler, EverySampleOnceAndInOrderForAnyRankCount) {
  for (const int64_t n : {0, 1, 2, 5, 7, 10, 100, 10000}) {
    for (const int ranks : {1, 2, 3, 5, 8, 16}) {
      std::vector<int64_t> gathered;
      int64_t fewest = std::numeric_limits<int64_t>::max();
      int64_t most = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const EvaluationSampler sampler(n, {.batch_size = 3, .num_replicas = ranks, .rank = rank});
        const BatchPlan plan = sampler.plan(0);
        EXPECT_EQ(plan.size(), sampler.size());
        gathered.insert(gathered.end(), plan.indices().begin(), plan.indices().end());
        fewest = std::min<int64_t>(fewest, std::ssize(plan.indices()));
        most = std::max<int64_t>(most, std::ssize(plan.indices()));
      }
      std::vector<int64_t> expected(n);
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(gathered, expected) << n << " samples, " << ranks << " ranks";
      EXPECT_LE(most - fewest, 1);
    }
  }
}

TEST(EvaluationSampler, RanksWithoutASampleHaveNoBatch) {
  const EvaluationSampler last(2, {.batch_size = 4, .num_replicas = 3, .rank = 2});
  EXPECT_EQ(last.size(), 0);
  EXPECT_EQ(last.plan(0).size(), 0);
}

/// What each of `processes` gets of so many virtual ranks.
std::vector<DistributedBatchSampler> samplers(int processes,
                                              int64_t virtual_ranks,
                                              int64_t micro_batches,
                                              int64_t n = 100) {
  std::vector<DistributedBatchSampler> all;
  for (int rank = 0; rank < processes; ++rank) {
    all.emplace_back(n,
                     DistributedBatchSamplerOptions{.batch_size = 3,
                                                    .num_replicas = processes,
                                                    .rank = rank,
                                                    .shuffle = true,
                                                    .virtual_ranks = virtual_ranks,
                                                    .micro_batches = micro_batches,
                                                    .seed = 9});
  }
  return all;
}

TEST(VirtualRanksOfASampler, HaveTheSameBatchesWhoeverComputesThem) {
  constexpr int64_t kRanks = 7;
  constexpr int64_t kEpoch = 2;
  std::vector<BatchPlan> each;  // as that many processes have them
  for (const DistributedBatchSampler& sampler : samplers(kRanks, 0, 1)) {
    each.push_back(sampler.plan(kEpoch));
  }
  const int64_t batches = each.front().size();
  for (const int64_t micros : {1, 2, 3, 100}) {
    for (const int processes : {1, 2, 3, 5, 7}) {
      Batches expected;
      Batches got;
      int64_t first = 0;
      for (const DistributedBatchSampler& sampler : samplers(processes, kRanks, micros)) {
        const BatchTurns turns = sampler.turns();
        EXPECT_EQ(turns.first, first);
        first += turns.leaves;
        EXPECT_EQ(sampler.size(), batches * turns.leaves);
        EXPECT_EQ(sampler.batches_each(), batches);
        EXPECT_EQ(sampler.order_digest(kEpoch), each.front().digest());
        const Batches mine = to_lists(sampler.plan(kEpoch));
        got.insert(got.end(), mine.begin(), mine.end());
        for (int64_t begin = 0; begin < batches; begin += micros) {
          for (int64_t rank = turns.first; rank < first; ++rank) {
            for (int64_t b = begin; b < std::min(batches, begin + micros); ++b) {
              const auto batch = each[static_cast<size_t>(rank)][b];
              expected.emplace_back(batch.begin(), batch.end());
            }
          }
        }
      }
      EXPECT_EQ(first, kRanks);
      EXPECT_EQ(got, expected) << processes << " processes, " << micros << " micro-batches";
    }
  }
}

TEST(VirtualRanksOfASampler, HaveOnePositionOnAnyNumberOfProcesses) {
  std::vector<DistributedBatchSampler> two = samplers(2, 6, 2);  // 100 / 6: 17 samples, 6 batches
  auto loop = two[1].begin();
  for (int batch = 0; batch < 5; ++batch, ++loop) {
    EXPECT_EQ(two[1].state().position, 0) << "the first update is not done: batch " << batch;
  }
  EXPECT_EQ(two[1].state().position, 2) << "a checkpoint is written after the step";
  ++loop;
  EXPECT_EQ(two[1].state().position, 2) << "the second update is not done";
  for (DistributedBatchSampler& sampler : samplers(4, 6, 2)) {
    sampler.load_state(two[1].state());
    auto rest = sampler.begin();
    const std::vector<int64_t> next((*rest).begin(), (*rest).end());
    const auto expected = sampler.plan(0)[2 * sampler.turns().leaves];
    EXPECT_EQ(next, std::vector<int64_t>(expected.begin(), expected.end()));
  }
  DistributedBatchSampler other = samplers(2, 6, 4).front();
  EXPECT_THAT(test::error_text<UsageError>([&] {
                other.load_state({0, 2});
              }),
              testing::HasSubstr("position 2 lies inside of an update, which takes 4 batches"));
  EXPECT_THAT(test::error_text<UsageError>([] { (void)samplers(1, -2, 1); }),
              testing::HasSubstr("virtual_ranks must not be negative, got -2"));
}

TEST(VirtualRanksOfASampler, LetSparesReadAlongWithOthers) {
  std::vector<DistributedBatchSampler> all = samplers(5, 3, 2);
  for (const int spare : {3, 4}) {
    const DistributedBatchSampler& like = all[spare - 3];
    EXPECT_TRUE(all[spare].turns().spare);
    EXPECT_FALSE(like.turns().spare);
    EXPECT_EQ(all[spare].turns().first, like.turns().first);
    EXPECT_EQ(to_lists(all[spare].plan(1)), to_lists(like.plan(1)));
    EXPECT_EQ(all[spare].order_digest(1), like.order_digest(1));
  }
}

TEST(VirtualRanksOfASampler, EvaluateInTheSameBatches) {
  const auto batches = [](int processes) {
    Batches all;
    for (int rank = 0; rank < processes; ++rank) {
      const EvaluationSampler sampler(
          50, {.batch_size = 4, .num_replicas = processes, .rank = rank, .virtual_ranks = 6});
      const Batches mine = to_lists(sampler.plan(0));
      EXPECT_EQ(std::ssize(mine), sampler.size());
      all.insert(all.end(), mine.begin(), mine.end());
    }
    return all;
  };
  for (const int processes : {1, 2, 4, 8}) {
    EXPECT_EQ(batches(processes), batches(6));
  }
}

}  // namespace
}  // namespace argosy::data
