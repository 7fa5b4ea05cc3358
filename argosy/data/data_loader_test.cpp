// What a loop over a loader yields.
#include "argosy/data/data_loader.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
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

using namespace argosy::data::loader_test;  // NOLINT(google-build-using-namespace)

TEST(DataLoader, SameBitsWithAnyNumberOfThreads) {
  const FourThreads threads;
  const Augmented set;
  DataLoader alone(set, {.batch_size = 5, .shuffle = true, .seed = 11});
  const Epoch first = run_epoch(alone);
  const Epoch second = run_epoch(alone);
  EXPECT_EQ(first.size(), 11U);
  EXPECT_FALSE(at::equal(std::get<1>(first[0]), std::get<1>(second[0])));
  for (const int threads : {1, 2, 8}) {
    DataLoader loader(set, {.batch_size = 5, .shuffle = true, .num_workers = threads, .seed = 11});
    expect_same(run_epoch(loader), first);
    expect_same(run_epoch(loader), second);
  }
}

TEST(DataLoader, OfASpareWarnsAProgramThatDoesNotKnow) {
  const auto log_of_loop = [](int rank, bool asks) {
    const TensorDataset set(torch::rand({12, 2}), torch::rand({12}));
    DataLoader loader(
        set,
        DistributedBatchSampler(
            set.size(), {.batch_size = 2, .num_replicas = 3, .rank = rank, .virtual_ranks = 2}));
    ::testing::internal::CaptureStderr();
    const bool is_spare = asks && loader.turns().spare;
    for (int epoch = 0; epoch < 2; ++epoch) {
      (void)run_epoch(loader);
    }
    EXPECT_EQ(is_spare, asks && rank == 2);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string log = log_of_loop(2, false);
  const std::string warning = "is a spare: its batches are those of virtual rank 0";
  EXPECT_NE(log.find(warning), std::string::npos);
  EXPECT_EQ(log.find(warning, log.find(warning) + 1), std::string::npos) << "told once";
  EXPECT_EQ(log_of_loop(2, true), "");
  EXPECT_EQ(log_of_loop(1, false), "");
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

/// Images of three channels, by the sample and by the batch.
struct Images {
  at::Tensor all = torch::rand({10, 3, 4, 5});
  int64_t size() const { return 10; }
  std::pair<at::Tensor, int64_t> get(int64_t i) const { return {all[i], i}; }
};
struct ImageBatches : Images {
  std::pair<at::Tensor, at::Tensor> get_batch(std::span<const int64_t> indices,
                                              const BatchContext&) const {
    const at::Tensor index = torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
    return {all.index_select(0, index), index};
  }
};

template <typename Set>
void expect_channels_last(const Set& set, const at::Tensor& all) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    DataLoader loader(set, {.batch_size = 4, .num_workers = 1, .memory_format = format});
    int64_t from = 0;
    for (auto& [x, y] : loader) {
      EXPECT_TRUE(x.is_contiguous(format));
      EXPECT_TRUE(at::equal(x, all.slice(0, from, from + 4)));
      EXPECT_TRUE(y.is_contiguous());
      from += 4;
    }
  }
}

TEST(DataLoader, ImagesLieInTheMemoryFormatThatTheModelWants) {
  const Images images;
  expect_channels_last(images, images.all);
  const ImageBatches batches;  // one that does not ask the context: converted by a loader thread
  expect_channels_last(batches, batches.all);
  for (const at::Tensor& source :
       {images.all, images.all.to(at::MemoryFormat::ChannelsLast), images.all.transpose(2, 3)}) {
    expect_channels_last(TensorDataset(source, torch::arange(10)), source);
  }
}

TEST(DataLoader, StatsSayWhoWaitedForWhom) {
  struct Slow {
    int64_t size() const { return 6; }
    int64_t get(int64_t index) const {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      return index;
    }
  };
  DataLoader loader(Slow(), {.batch_size = 2});
  EXPECT_EQ(loader.stats().epoch, -1);
  for (int epoch = 0; epoch < 2; ++epoch) {
    int64_t batches = 0;
    for ([[maybe_unused]] auto& batch : loader) {
      EXPECT_EQ(loader.stats().batches, ++batches);
    }
    const LoaderStats stats = loader.stats();
    EXPECT_EQ(stats.epoch, epoch);
    EXPECT_EQ(stats.samples, 6);
    EXPECT_GE(stats.waited.count(), 0.018);
    EXPECT_GT(stats.input_bound(), 0.5);
    EXPECT_GE(stats.pool_bytes, 16U);
  }
  const TensorDataset fast(torch::arange(6));
  DataLoader quick(fast, {.batch_size = 2, .num_workers = 1});
  for ([[maybe_unused]] auto& batch : quick) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const LoaderStats stats = quick.stats();  // how long it waited is the machine's affair
  EXPECT_GE(stats.used.count(), 0.03);
  EXPECT_DOUBLE_EQ(stats.input_bound(),
                   stats.waited.count() / (stats.waited.count() + stats.used.count()));
}

// What Paddle calls batch_size=None.
TEST(DataLoader, ACollateFunctionCanLeaveSamplesAsTheyAre) {
  const TensorDataset set(torch::arange(3));
  int64_t expected = 0;
  for (auto& [x] : DataLoader(set, {}, [](const auto& samples) { return samples[0]; })) {
    EXPECT_EQ(x.dim(), 0);
    EXPECT_EQ(x.template item<int64_t>(), expected++);
  }
  EXPECT_EQ(expected, 3);
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
