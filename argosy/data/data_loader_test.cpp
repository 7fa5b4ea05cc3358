// What a loop over a loader yields.
#include "argosy/data/data_loader.h"

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader_test_support.h"
#include "argosy/data/tensor_dataset.h"

namespace argosy::data {
namespace {

using namespace argosy::data::testing;  // NOLINT(google-build-using-namespace)

TEST(DataLoader, SameBitsWithAnyNumberOfWorkers) {
  const FourThreads threads;
  const Augmented set;
  DataLoader alone(set, {.batch_size = 5, .shuffle = true, .seed = 11});
  const Epoch first = run_epoch(alone);
  const Epoch second = run_epoch(alone);
  EXPECT_EQ(first.size(), 11U);
  EXPECT_FALSE(at::equal(std::get<1>(first[0]), std::get<1>(second[0])));
  for (const int workers : {1, 2, 8}) {
    DataLoader loader(set, {.batch_size = 5, .shuffle = true, .num_workers = workers, .seed = 11});
    expect_same(run_epoch(loader), first);
    expect_same(run_epoch(loader), second);
  }
}

TEST(DataLoader, TheSeedChangesOrderAndStreams) {
  const Augmented set;
  DataLoader a(set, {.batch_size = 53, .seed = 1});
  DataLoader b(set, {.batch_size = 53, .seed = 2});
  const Epoch of_a = run_epoch(a);
  const Epoch of_b = run_epoch(b);
  EXPECT_TRUE(at::equal(std::get<1>(of_a[0]), std::get<1>(of_b[0])));
  EXPECT_FALSE(at::equal(std::get<0>(of_a[0]), std::get<0>(of_b[0])));
}

TEST(DataLoader, SizesAndEdges) {
  const TensorDataset none(torch::empty({0, 3}));
  DataLoader empty(none, {.batch_size = 4, .num_workers = 2});
  EXPECT_EQ(empty.size(), 0);
  EXPECT_TRUE(empty.begin() == empty.end());
  EXPECT_EQ(empty.epoch(), 1);

  const TensorDataset three(torch::rand({3, 2}));
  DataLoader small(three, {.batch_size = 4, .num_workers = 2});
  EXPECT_EQ(small.size(), 1);
  int64_t rows = 0;
  for (auto& [x] : small) {
    rows += x.size(0);
  }
  EXPECT_EQ(rows, 3);
  DataLoader dropping(three, {.batch_size = 4, .drop_last = true, .num_workers = 2});
  EXPECT_EQ(dropping.size(), 0);
  EXPECT_TRUE(dropping.begin() == dropping.end());
  EXPECT_EQ(DataLoader(three).size(), 3);
}

TEST(DataLoader, ARankWithoutSamplesHasAnEmptyLoop) {
  const TensorDataset set(torch::arange(2));
  for (int rank = 0; rank < 5; ++rank) {
    DataLoader exact(set, EvaluationSampler(2, {.batch_size = 4, .num_replicas = 5, .rank = rank}));
    int64_t seen = 0;
    for (auto& [x] : exact) {
      seen += x.size(0);
    }
    EXPECT_EQ(seen, rank < 2 ? 1 : 0);
    DataLoader padded(
        set, DistributedBatchSampler(2, {.batch_size = 4, .num_replicas = 5, .rank = rank}));
    EXPECT_EQ(padded.size(), 1);
  }
}

TEST(DataLoader, TakesSamplersOfBothKindsAndSharesTheirEpoch) {
  const TensorDataset set(torch::arange(12));
  DistributedBatchSampler batches(12,
                                  {.batch_size = 3, .num_replicas = 2, .rank = 1, .shuffle = true});
  DataLoader loader(set, batches, {.num_workers = 1});
  batches.set_epoch(7);  // the loader's copy is the same sampler
  EXPECT_EQ(loader.epoch(), 7);
  int64_t at = 0;
  for (auto& [x] : loader) {
    const BatchPlan plan = batches.plan(7);
    const std::vector<int64_t> expected(plan[at].begin(), plan[at].end());
    EXPECT_TRUE(at::equal(x, torch::tensor(expected)));
    ++at;
  }
  EXPECT_EQ(at, 2);
  DataLoader strided(set, DistributedSampler(12, {.num_replicas = 3}), {.batch_size = 2});
  EXPECT_EQ(strided.size(), 2);
}

TEST(DataLoader, ACollateFunctionMakesAnyBatch) {
  struct Words {
    int64_t size() const { return 5; }
    std::string get(int64_t index) const { return std::string(index, 'x'); }
  };
  DataLoader loader(
      Words(), {.batch_size = 2, .num_workers = 2}, [](const std::vector<std::string>& s) {
        std::string all;
        for (const std::string& word : s) {
          all += word + ".";
        }
        return all;
      });
  std::vector<std::string> batches;
  for (std::string& batch : loader) {
    batches.push_back(batch);
  }
  EXPECT_THAT(batches, ::testing::ElementsAre(".x.", "xx.xxx.", "xxxx."));
}

TEST(DataLoader, ANamedDataSetIsReferredToATemporaryIsMovedIn) {
  struct Counted {
    std::shared_ptr<int> copies = std::make_shared<int>(0);
    Counted() = default;
    Counted(const Counted& other) : copies(other.copies) { ++*copies; }
    Counted(Counted&&) = default;
    int64_t size() const { return 1; }
    int64_t get(int64_t) const { return 4; }
  };
  const Counted named;
  DataLoader by_reference(named);
  EXPECT_EQ(&by_reference.dataset(), &named);
  DataLoader owning{Counted()};
  EXPECT_EQ(*named.copies + *owning.dataset().copies, 0);
  EXPECT_EQ((*owning.begin()).item<int64_t>(), 4);
}

}  // namespace
}  // namespace argosy::data
