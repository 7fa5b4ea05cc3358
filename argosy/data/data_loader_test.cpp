#include "argosy/data/data_loader.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/tensor_dataset.h"

namespace argosy::data {
namespace {

using testing::HasSubstr;

/// Gives the process several intra-op threads, so that a loader which let them in would show. The
/// default may be one.
class FourThreads final {
 public:
  FourThreads() { at::set_num_threads(4); }
  ~FourThreads() { at::set_num_threads(before_); }
  FourThreads(const FourThreads&) = delete;
  FourThreads& operator=(const FourThreads&) = delete;

 private:
  int before_ = at::get_num_threads();
};

/// Crops at random, adds noise, and reduces by an operator that could run on several threads.
struct Augmented {
  int64_t n = 53;
  int64_t size() const { return n; }
  std::tuple<at::Tensor, int64_t> get(int64_t index, Random& random) const {
    const at::Tensor base = torch::arange(100000, torch::kFloat) * static_cast<double>(index + 1);
    const int64_t top = random.integer(0, 1000);
    const at::Tensor crop = base.slice(0, top, top + 98000);
    return {torch::stack({crop.sum(), crop.std(), torch::tensor(random.normal(), torch::kFloat)}),
            index};
  }
};

using Epoch = std::vector<std::tuple<at::Tensor, at::Tensor>>;

template <typename Loader>
Epoch run_epoch(Loader& loader) {
  Epoch epoch;
  for (auto& [x, y] : loader) {
    epoch.emplace_back(x, y);  // kept, not copied: the pool must leave them alone
  }
  return epoch;
}

void expect_same(const Epoch& a, const Epoch& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::equal(std::get<0>(a[i]), std::get<0>(b[i]))) << "batch " << i;
    EXPECT_TRUE(at::equal(std::get<1>(a[i]), std::get<1>(b[i]))) << "batch " << i;
  }
}

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

template <typename F>
std::string usage_error_of(F f) {
  try {
    f();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(DataLoader, OptionsThatABatchSamplerDecidesAreRefused) {
  const TensorDataset set(torch::arange(12));
  const DistributedBatchSampler sampler(12, {.batch_size = 3});
  EXPECT_EQ(
      usage_error_of([&] { DataLoader(set, sampler, {.batch_size = 64}); }),
      "[data.DataLoader] batch_size = 64 together with a batch sampler: the batch sampler decides "
      "it. Give batch_size = 64 to the sampler and remove it from the loader's options");
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, sampler, {.shuffle = true}); }),
              HasSubstr("shuffle together with a batch sampler"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, sampler, {.drop_last = true}); }),
              HasSubstr("drop_last together with a batch sampler"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, SequenceSampler(12), {.shuffle = true}); }),
              HasSubstr("shuffle together with a sampler"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.batch_size = 0}); }),
              HasSubstr("batch_size must be positive, got 0"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.num_workers = -1}); }),
              HasSubstr("num_workers must not be negative"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.prefetch_factor = 0}); }),
              HasSubstr("prefetch_factor must be positive"));
}

TEST(DataLoader, ASamplerOfAnotherDataSetIsFoundAtTheFirstBatch) {
  const TensorDataset set(torch::arange(10));
  DataLoader loader(set, SequenceSampler(11), {.batch_size = 2, .num_workers = 2});
  EXPECT_THAT(usage_error_of([&] { (void)loader.begin(); }),
              HasSubstr("index 10 is outside the data set of 10 samples"));
}

struct Failing {
  int64_t bad = 17;
  int kind = 0;
  int64_t size() const { return 40; }
  int64_t get(int64_t index) const {
    if (index == bad && kind == 0) {
      throw std::runtime_error("no such photo");
    }
    if (index == bad && kind == 1) {
      throw DataError("vision.jpeg", "not a JPEG file", {"faces/17.jpg", 4});
    }
    if (index == bad && kind == 2) {
      (void)torch::zeros({2}).view({3});
    }
    if (index == bad) {
      throw 5;  // NOLINT: somebody will
    }
    return index;
  }
};

TEST(DataLoader, WhatASampleThrewComesOutWithItsIndexInItsPlace) {
  const std::vector<std::string> expected{
      "[data.DataLoader] get() threw: no such photo (batch 4 of epoch 0) (sample 17)",
      "[vision.jpeg] faces/17.jpg: not a JPEG file (sample 17) (at byte 4)",
      "[data.DataLoader] get() threw: shape '[3]' is invalid for input of size 2",
      "[data.DataLoader] get() threw: something that is no std::exception"};
  for (const int workers : {0, 1, 2, 8}) {
    for (int kind = 0; kind < 4; ++kind) {
      DataLoader loader(Failing{.kind = kind}, {.batch_size = 4, .num_workers = workers});
      int64_t seen = 0;
      try {
        for (auto& x : loader) {
          seen += x.size(0);
        }
        FAIL() << "nothing was thrown";
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), testing::StartsWith(expected[kind]));
        EXPECT_EQ(error.place().index, 17);
      }
      EXPECT_EQ(seen, 16);
      EXPECT_EQ(loader.state().position, 4);  // a resumed run meets the same batch again
      loader.set_epoch(5);
      EXPECT_EQ((*loader.begin()).size(0), 4);  // and the loader still works
    }
  }
}

TEST(DataLoader, BreakingOffAHundredTimesThenAWholeEpoch) {
  const Augmented set{.n = 20};
  DataLoader reference(set, {.batch_size = 2, .shuffle = true});
  reference.set_epoch(100);
  for (const int workers : {0, 2}) {
    DataLoader loader(set, {.batch_size = 2, .shuffle = true, .num_workers = workers});
    for (int round = 0; round < 100; ++round) {
      int64_t count = 0;
      for ([[maybe_unused]] auto& batch : loader) {
        if (++count > round % 3) {
          break;
        }
      }
    }
    EXPECT_EQ(loader.epoch(), 100);
    reference.set_epoch(100);
    expect_same(run_epoch(loader), run_epoch(reference));
  }
}

TEST(DataLoader, DestroyedInMidEpochEvenBeforeItsLoop) {
  for (int i = 0; i < 20; ++i) {
    auto loader = std::make_unique<DataLoader<Augmented>>(
        Augmented{.n = 20}, DataLoaderOptions{.batch_size = 2, .num_workers = 2});
    auto it = loader->begin();
    for (int step = 0; step < i % 5; ++step) {
      ++it;
    }
    if (i % 2 == 0) {
      loader.reset();  // the iterator keeps what it needs
      EXPECT_EQ(std::get<1>(*it).size(0), 2);
      ++it;
    }
  }
}

TEST(DataLoader, ASecondLoopInsideTheFirstIsRefusedASecondLoaderIsNot) {
  const TensorDataset set(torch::arange(6));
  DataLoader loader(set, {.batch_size = 2, .num_workers = 1});
  DataLoader other(set, {.batch_size = 3, .num_workers = 1});
  int64_t inner = 0;
  for ([[maybe_unused]] auto& batch : loader) {
    EXPECT_THAT(usage_error_of([&] { (void)loader.begin(); }),
                HasSubstr("begin() while another loop over this loader is running"));
    for ([[maybe_unused]] auto& second : other) {
      ++inner;
    }
  }
  EXPECT_EQ(inner, 6);
  EXPECT_EQ(loader.epoch(), 1);  // the refused begin took no epoch
}

TEST(DataLoader, AnIteratorAtItsEndDoesNotDisturbTheNextLoop) {
  const TensorDataset set(torch::arange(40));
  DataLoader loader(set, {.batch_size = 2, .num_workers = 2});
  auto old = std::make_unique<decltype(loader.begin())>(loader.begin());
  while (!(*old == loader.end())) {
    ++*old;
  }
  int64_t count = 0;
  for ([[maybe_unused]] auto& batch : loader) {
    ++count;
    if (count == 3) {
      ++*old;
      old.reset();
    }
  }
  EXPECT_EQ(count, 20);
}

TEST(DataLoader, KeptBatchesAreNeverOverwrittenAndDroppedOnesAreReused) {
  const TensorDataset set(torch::arange(400).view({200, 2}));
  DataLoader loader(set, {.batch_size = 2, .num_workers = 2});
  std::vector<at::Tensor> kept;  // every third one, by a view
  for (int epoch = 0; epoch < 3; ++epoch) {
    int64_t at = 0;
    for (auto& [x] : loader) {
      if (at % 3 == 0) {
        kept.push_back(x.select(0, 1));
      }
      ++at;
    }
  }
  ASSERT_EQ(kept.size(), 102U);
  for (size_t i = 0; i < kept.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i % 34) * 3 * 2 + 1;
    EXPECT_TRUE(at::equal(kept[i], torch::tensor({row * 2, row * 2 + 1}, torch::kLong))) << i;
  }
  EXPECT_LE(loader.memory().allocated, 102U + 8U);
  EXPECT_GE(loader.memory().reused, 190U);
}

TEST(DataLoader, WorkersRecordNoGradientsAndLeaveThisThreadAsItWas) {
  struct Watched {
    int64_t size() const { return 8; }
    std::pair<int64_t, int64_t> get(int64_t) const {
      (void)torch::rand({200, 200})
          .sum();  // a parallel operator, where libtorch sets its threads up
      return {at::get_num_threads(), at::GradMode::is_enabled() ? 1 : 0};
    }
  };
  const FourThreads four;
  const int before = at::get_num_threads();
  ASSERT_EQ(before, 4);
  for (const int workers : {0, 2}) {
    DataLoader loader(Watched(), {.batch_size = 4, .num_workers = workers});
    for (auto& [threads, gradients] : loader) {
      EXPECT_EQ(threads.max().item<int64_t>(), 1);
      EXPECT_EQ(gradients.max().item<int64_t>(), 0);
      EXPECT_TRUE(at::GradMode::is_enabled());
      EXPECT_EQ(at::get_num_threads(), before);
    }
  }
  std::thread([&] {
    (void)torch::rand({200, 200}).sum();
    EXPECT_EQ(at::get_num_threads(), before);  // other threads keep the process's number
  }).join();
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
  EXPECT_THAT(batches, testing::ElementsAre(".x.", "xx.xxx.", "xxxx."));
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
