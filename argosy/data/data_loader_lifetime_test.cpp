// Loops that are broken off, loaders that go, batches that are kept; the loader's threads.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/data_loader_test_support.h"
#include "argosy/data/tensor_dataset.h"

namespace argosy::data {
namespace {

using ::testing::HasSubstr;
using namespace argosy::data::loader_test;  // NOLINT(google-build-using-namespace)

TEST(DataLoaderLifetime, BreakingOffAHundredTimesThenAWholeEpoch) {
  const Augmented set{.n = 20};
  DataLoader reference(set, {.batch_size = 2, .shuffle = true});
  reference.set_epoch(100);
  for (const int threads : {0, 2}) {
    DataLoader loader(set, {.batch_size = 2, .shuffle = true, .num_workers = threads});
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

TEST(DataLoaderLifetime, DestroyedInMidEpochEvenBeforeItsLoop) {
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

TEST(DataLoaderLifetime, ASecondLoopInsideTheFirstIsRefusedASecondLoaderIsNot) {
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

TEST(DataLoaderLifetime, AnIteratorAtItsEndDoesNotDisturbTheNextLoop) {
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

TEST(DataLoaderLifetime, KeptBatchesAreNeverOverwrittenAndDroppedOnesAreReused) {
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

TEST(DataLoaderLifetime, LoaderThreadsRecordNoGradientsAndLeaveThisThreadAsItWas) {
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
  for (const int threads : {0, 2}) {
    DataLoader loader(Watched(), {.batch_size = 4, .num_workers = threads});
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

}  // namespace
}  // namespace argosy::data
