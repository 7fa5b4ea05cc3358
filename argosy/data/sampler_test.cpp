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

}  // namespace
}  // namespace argosy::data
