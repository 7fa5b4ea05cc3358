#include "argosy/train/dealing.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::train {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> numbers(int64_t n) {
  std::vector<int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// What all ranks have in these batches.
std::vector<int64_t> of_all(std::span<const int64_t> samples,
                            int64_t batch_size,
                            int64_t ranks,
                            bool drop_last) {
  std::vector<int64_t> all;
  int64_t batches = -1;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const data::BatchPlan plan = deal(
        samples, {.batch_size = batch_size, .ranks = ranks, .rank = rank, .drop_last = drop_last});
    EXPECT_TRUE(batches < 0 || batches == plan.size()) << "ranks would wait for each other";
    batches = plan.size();
    all.insert(all.end(), plan.indices().begin(), plan.indices().end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Deal, EachSampleOnceForAnyNumbers) {
  for (int64_t ranks = 1; ranks <= 5; ++ranks) {
    for (int64_t batch_size = 1; batch_size <= 4; ++batch_size) {
      for (int64_t n = ranks; n < 45; ++n) {
        EXPECT_EQ(of_all(numbers(n), batch_size, ranks, false), numbers(n))
            << n << " samples, " << ranks << " ranks, batches of " << batch_size;
      }
    }
  }
}

TEST(Deal, DroppingTheLastLeavesWholeBatches) {
  EXPECT_EQ(of_all(numbers(23), 4, 2, true), numbers(16));
}

TEST(Deal, FewerSamplesThanRanksComeMoreThanOnce) {
  EXPECT_THAT(of_all(numbers(2), 4, 3, false), ElementsAre(0, 0, 1));
}

TEST(Remaining, WithTheFirstBatchesTheyAreTheEpoch) {
  for (const bool shuffle : {false, true}) {
    for (const int64_t ranks : {1, 2, 3}) {
      const Dealing order{.samples = 48, .shuffle = shuffle, .seed = 7};
      for (int64_t done = 0; done <= 4; ++done) {
        std::vector<int64_t> all = remaining_samples(order, 3, std::vector<Leg>{{ranks, 4, done}});
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const data::DistributedBatchSampler sampler(48,
                                                      {.batch_size = 4,
                                                       .num_replicas = static_cast<int>(ranks),
                                                       .rank = static_cast<int>(rank),
                                                       .shuffle = shuffle,
                                                       .seed = 7});
          const data::BatchPlan plan = sampler.plan(3);
          for (int64_t batch = 0; batch < done; ++batch) {
            all.insert(all.end(), plan[batch].begin(), plan[batch].end());
          }
        }
        std::sort(all.begin(), all.end());
        EXPECT_EQ(all, numbers(48)) << ranks << " ranks, " << done << " batches done";
      }
    }
  }
}

TEST(Remaining, AfterSeveralChangesOfRanksEachSampleCameOnce) {
  const Dealing order{.samples = 97, .shuffle = true, .seed = 1};
  std::vector<Leg> legs{{3, 4, 2}};  // padded to 99: two samples come twice in the whole epoch
  std::vector<int64_t> had;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const data::DistributedBatchSampler sampler(97,
                                                {.batch_size = 4,
                                                 .num_replicas = 3,
                                                 .rank = static_cast<int>(rank),
                                                 .shuffle = true,
                                                 .seed = 1});
    const data::BatchPlan plan = sampler.plan(0);
    for (int64_t batch = 0; batch < 2; ++batch) {
      had.insert(had.end(), plan[batch].begin(), plan[batch].end());
    }
  }
  for (const Leg next : {Leg{2, 5, 3}, Leg{4, 2, 1}, Leg{1, 7, 2}}) {
    const std::vector<int64_t> left = remaining_samples(order, 0, legs);
    for (int64_t rank = 0; rank < next.ranks; ++rank) {
      const data::BatchPlan plan =
          deal(left, {.batch_size = next.batch_size, .ranks = next.ranks, .rank = rank});
      for (int64_t batch = 0; batch < next.done; ++batch) {
        had.insert(had.end(), plan[batch].begin(), plan[batch].end());
      }
    }
    legs.push_back(next);
  }
  const std::vector<int64_t> left = remaining_samples(order, 0, legs);
  had.insert(had.end(), left.begin(), left.end());
  std::sort(had.begin(), had.end());
  EXPECT_EQ(had, numbers(97));
}

}  // namespace
}  // namespace argosy::train
