#include "argosy/data/bucket_batch_sampler.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/data/random.h"

#include "tests/support/error_text.h"

namespace argosy::data {
namespace {

using Batch = std::vector<int64_t>;
using Batches = std::vector<Batch>;

Batches in_lists(const BatchPlan& plan) {
  Batches lists;
  for (int64_t b = 0; b < plan.size(); ++b) {
    lists.emplace_back(plan[b].begin(), plan[b].end());
  }
  return lists;
}

std::vector<int64_t> made_lengths(int64_t n) {
  Random random(1, 2, 3);
  std::vector<int64_t> lengths(n);
  std::generate(lengths.begin(), lengths.end(), [&] { return random.integer(1, 500); });
  return lengths;
}

/// The share of padding in the batches of a plan.
double padding(const BatchPlan& plan, const std::vector<int64_t>& lengths) {
  int64_t used = 0;
  int64_t all = 0;
  for (const Batch& batch : in_lists(plan)) {
    int64_t longest = 0;
    for (const int64_t i : batch) {
      used += lengths[i];
      longest = std::max(longest, lengths[i]);
    }
    all += longest * static_cast<int64_t>(batch.size());
  }
  return 1 - static_cast<double>(used) / static_cast<double>(all);
}

TEST(BucketBatchSampler, EverySampleComesOnceAndBatchesAreOfLikeLength) {
  const std::vector<int64_t> lengths = made_lengths(1000);
  const BucketBatchSampler sampler(lengths, {.batch_size = 8, .seed = 5});
  EXPECT_EQ(sampler.size(), 125);
  const BatchPlan plan = sampler.plan(0);
  Batch all(plan.indices().begin(), plan.indices().end());
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(all[i], i);
  }
  EXPECT_LT(padding(plan, lengths), 0.05);
  const DistributedBatchSampler plain(1000, {.batch_size = 8, .shuffle = true});
  EXPECT_GT(padding(plain.plan(0), lengths), 0.4);
}

TEST(BucketBatchSampler, EpochsAndSeedsDiffer) {
  const std::vector<int64_t> lengths = made_lengths(64);
  const auto plan = [&](uint64_t seed, int64_t epoch) {
    return in_lists(BucketBatchSampler(lengths, {.batch_size = 4, .seed = seed}).plan(epoch));
  };
  const std::set<Batches> different{plan(0, 0), plan(0, 1), plan(1, 0), plan(1, 1)};
  EXPECT_EQ(different.size(), 4U);
  EXPECT_EQ(plan(1, 1), plan(1, 1));
}

TEST(BucketBatchSampler, WithoutShuffleBucketsAreTheDataSets) {
  const std::vector<int64_t> lengths{3, 1, 2, 1, 9, 8, 7, 6, 5};
  const BucketBatchSampler sampler(lengths,
                                   {.batch_size = 2, .shuffle = false, .bucket_batches = 2});
  EXPECT_EQ(in_lists(sampler.plan(3)), (Batches{{1, 3}, {2, 0}, {7, 6}, {5, 4}, {8}}));
  EXPECT_EQ(
      in_lists(
          BucketBatchSampler(
              lengths, {.batch_size = 2, .shuffle = false, .drop_last = true, .bucket_batches = 2})
              .plan(0)),
      (Batches{{1, 3}, {2, 0}, {7, 6}, {5, 4}}));
}

TEST(BucketBatchSampler, RanksOfAStepHaveLikeLengthsAndEquallyManyBatches) {
  const std::vector<int64_t> lengths = made_lengths(1001);
  std::vector<Batches> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const BucketBatchSampler sampler(lengths,
                                     {.batch_size = 8, .num_replicas = 4, .rank = rank, .seed = 5});
    ranks.push_back(in_lists(sampler.plan(2)));
    EXPECT_EQ(ranks.back().size(), 32U);  // 1004 samples in fours, 251 each
  }
  std::map<int64_t, int> times;
  for (size_t step = 0; step < 32; ++step) {
    int64_t shortest = 1000;
    int64_t longest = 0;
    for (const Batches& batches : ranks) {
      EXPECT_EQ(batches[step].size(), step < 31 ? 8U : 3U);
      for (const int64_t i : batches[step]) {
        ++times[i];
        shortest = std::min(shortest, lengths[i]);
        longest = std::max(longest, lengths[i]);
      }
    }
    if (step < 31) {
      EXPECT_LT(longest - shortest, 60) << step;
    }
  }
  EXPECT_EQ(times.size(), 1001U);
}

TEST(BucketBatchSampler, VirtualRanksHaveTheSameBatchesOnAnyNumberOfProcesses) {
  const std::vector<int64_t> lengths = made_lengths(203);
  const auto of_process = [&](int processes, int rank) {
    return BucketBatchSampler(lengths,
                              {.batch_size = 4,
                               .num_replicas = processes,
                               .rank = rank,
                               .virtual_ranks = 4,
                               .micro_batches = 2,
                               .seed = 9});
  };
  // Batch b of virtual rank v, wherever it is computed.
  const auto collected = [&](int processes) {
    std::map<std::pair<int64_t, int64_t>, Batch> batches;
    for (int rank = 0; rank < processes; ++rank) {
      const BucketBatchSampler sampler = of_process(processes, rank);
      const Batches plan = in_lists(sampler.plan(1));
      for (size_t number = 0; number < plan.size(); ++number) {
        const BatchTurns::Turn turn =
            sampler.turns().turn_of(static_cast<int64_t>(number), sampler.batches_each());
        batches[{sampler.turns().first + turn.leaf, turn.batch}] = plan[number];
      }
    }
    return batches;
  };
  const auto four = collected(4);
  EXPECT_EQ(four.size(), 4U * 13U);
  EXPECT_EQ(collected(1), four);
  EXPECT_EQ(collected(2), four);
  EXPECT_EQ(collected(3), four);
  EXPECT_EQ(of_process(1, 0).order_digest(1), of_process(3, 2).order_digest(1));
}

TEST(BucketBatchSampler, ResumesFromEveryPosition) {
  const std::vector<int64_t> lengths = made_lengths(50);
  const auto make = [&] {
    return BucketBatchSampler(lengths, {.batch_size = 3, .num_replicas = 2, .rank = 1, .seed = 1});
  };
  const auto rest = [](BucketBatchSampler& sampler) {
    Batches lists;
    for (const auto batch : sampler) {
      lists.emplace_back(batch.begin(), batch.end());
    }
    return lists;
  };
  const Batches third = in_lists(make().plan(3));
  for (int64_t taken = 1; taken < make().size(); ++taken) {
    BucketBatchSampler first = make();
    first.set_epoch(3);
    int64_t count = 0;
    for ([[maybe_unused]] const auto batch : first) {
      if (++count == taken) {
        break;
      }
    }
    BucketBatchSampler second = make();
    second.load_state(first.state());
    EXPECT_EQ(rest(second), Batches(third.begin() + taken, third.end()));
    EXPECT_EQ(rest(second), in_lists(make().plan(4)));
  }
}

TEST(BucketBatchSampler, NoSamplesAndWrongOptions) {
  EXPECT_EQ(BucketBatchSampler({}, {.batch_size = 2}).size(), 0);
  const std::vector<int64_t> lengths{3, -1};
  EXPECT_EQ(test::error_text<UsageError>([&] { (void)BucketBatchSampler(lengths); }),
            "[data.BucketBatchSampler] length of sample 1 must not be negative, got -1");
  EXPECT_EQ(test::error_text<UsageError>([&] {
              (void)BucketBatchSampler(std::span(lengths).first(1), {.bucket_batches = 0});
            }),
            "[data.BucketBatchSampler] bucket_batches must be positive, got 0");
  EXPECT_THROW((void)BucketBatchSampler(std::span(lengths).first(1), {.batch_size = 0}),
               UsageError);
}

}  // namespace
}  // namespace argosy::data
