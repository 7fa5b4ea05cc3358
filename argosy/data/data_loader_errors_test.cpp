// What goes wrong in a loader, and how it is said.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/data_loader_test_support.h"
#include "argosy/data/subset.h"
#include "argosy/data/tensor_dataset.h"

namespace argosy::data {
namespace {

using ::testing::HasSubstr;
using namespace argosy::data::loader_test;  // NOLINT(google-build-using-namespace)

TEST(DataLoaderErrors, OptionsThatABatchSamplerDecidesAreRefused) {
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
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.timeout = std::chrono::seconds(1)}); }),
              HasSubstr("timeout = 1000 ms with num_workers = 0"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.prefetch_factor = 3}); }),
              HasSubstr("prefetch_factor = 3 with num_workers = 0"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.thread_init = [](int /*thread*/) {}}); }),
              HasSubstr("thread_init with num_workers = 0"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.timeout = std::chrono::seconds(-1)}); }),
              HasSubstr("timeout must not be negative"));
  EXPECT_THAT(
      usage_error_of([&] { DataLoader(set, {.memory_format = at::MemoryFormat::Preserve}); }),
      HasSubstr("memory_format must be Contiguous or ChannelsLast"));
}

TEST(DataLoaderErrors, ASamplerOfAnotherDataSetIsFoundAtTheFirstBatch) {
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

TEST(DataLoaderErrors, WhatASampleThrewComesOutWithItsIndexInItsPlace) {
  const std::vector<std::string> expected{
      "[data.DataLoader] get() threw: no such photo (batch 4 of epoch 0) (sample 17)",
      "[vision.jpeg] faces/17.jpg: not a JPEG file (sample 17) (at byte 4)",
      "[data.DataLoader] get() threw: shape '[3]' is invalid for input of size 2",
      "[data.DataLoader] get() threw: something that is no std::exception"};
  for (const int threads : {0, 1, 2, 8}) {
    for (int kind = 0; kind < 4; ++kind) {
      DataLoader loader(Failing{.kind = kind}, {.batch_size = 4, .num_workers = threads});
      int64_t seen = 0;
      try {
        for (auto& x : loader) {
          seen += x.size(0);
        }
        FAIL() << "nothing was thrown";
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), ::testing::StartsWith(expected[kind]));
        EXPECT_EQ(error.place().index, 17);
      }
      EXPECT_EQ(seen, 16);
      EXPECT_EQ(loader.state().position, 4);  // a resumed run meets the same batch again
      loader.set_epoch(5);
      EXPECT_EQ((*loader.begin()).size(0), 4);  // and the loader still works
    }
  }
}

/// A whole batch at once: the loader cannot know which sample was the cause.
struct FailingBatch {
  int64_t bad = 17;
  bool data_error = false;
  int64_t size() const { return 40; }
  at::Tensor get_batch(std::span<const int64_t> indices, const BatchContext& /*context*/) const {
    if (std::find(indices.begin(), indices.end(), bad) != indices.end()) {
      if (data_error) {
        throw DataError("vision.shard", "torn record", {.path = "a.tar", .offset = 512});
      }
      throw std::runtime_error("no such shard");
    }
    return torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
  }
};

TEST(DataLoaderErrors, OfAWholeBatchNameItsSamples) {
  EXPECT_EQ(data_error_of(DataLoader(FailingBatch(), {.batch_size = 4, .num_workers = 1})),
            "[data.DataLoader] get_batch() threw: no such shard (batch 4 of epoch 0, samples 16, "
            "17, 18, 19)");
  EXPECT_EQ(data_error_of(DataLoader(FailingBatch(), {.batch_size = 10})),
            "[data.DataLoader] get_batch() threw: no such shard (batch 1 of epoch 0, 10 samples: "
            "10, …, 19)");
  EXPECT_EQ(data_error_of(DataLoader(FailingBatch{.data_error = true}, {.batch_size = 2})),
            "[vision.shard] a.tar: torn record (batch 8 of epoch 0, samples 16, 17) (at byte 512)");
  EXPECT_EQ(data_error_of(DataLoader(FailingBatch(), {.batch_size = 1})),
            "[data.DataLoader] get_batch() threw: no such shard (batch 17 of epoch 0) (sample 17)");
}

/// Hangs in one sample until the test lets it go.
struct Hanging {
  std::atomic<bool>* released;
  bool whole = false;
  int64_t size() const { return 40; }
  int64_t get(int64_t index) const {
    while (index == 17 && !*released) {
      std::this_thread::yield();
    }
    return index;
  }
};
struct HangingBatch : Hanging {
  at::Tensor get_batch(std::span<const int64_t> indices, const BatchContext& context) const {
    for (const int64_t index : indices) {
      context.begin_sample(index);
      (void)get(index);
    }
    return torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
  }
};

template <typename Set>
void expect_named_when_late(const Set& set, std::atomic<bool>& released) {
  DataLoader loader(set,
                    {.batch_size = 4, .num_workers = 2, .timeout = std::chrono::milliseconds(500)});
  int64_t seen = 0;
  try {
    for (auto& batch : loader) {
      seen += batch.size(0);
    }
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[data.DataLoader] waited for batch 4 for "));
    EXPECT_THAT(error.what(), ::testing::ContainsRegex("thread [01] is inside"));
    EXPECT_EQ(error.place().index, 17);
  }
  EXPECT_EQ(seen, 16);
  EXPECT_EQ(loader.state().position, 4);
  released = true;  // the next loop waits for the thread
  loader.set_epoch(0);
  seen = 0;
  for (auto& batch : loader) {
    seen += batch.size(0);
  }
  EXPECT_EQ(seen, 40);
}

TEST(DataLoaderErrors, ALateBatchNamesThreadAndSample) {
  std::atomic<bool> released{false};
  expect_named_when_late(Hanging{&released}, released);
  released = false;
  expect_named_when_late(HangingBatch{{&released}}, released);
}

TEST(DataLoaderErrors, AThreadThatCannotBeInitialisedEndsTheLoopAndTakesNoEpoch) {
  const TensorDataset set(torch::arange(10));
  DataLoader loader(set, {.num_workers = 2, .thread_init = [](int thread) {
                            if (thread == 1) {
                              throw std::runtime_error("no device");
                            }
                          }});
  EXPECT_EQ(usage_error_of([&] { (void)loader.begin(); }),
            "[data.DataLoader] thread_init threw on thread 1: no device");
  EXPECT_EQ(loader.epoch(), 0);
}

TEST(DataLoaderErrors, NameASampleOfASubsetByItsPlaceInTheWholeSet) {
  const std::vector<int64_t> some{30, 17, 2};
  const Failing by_sample;
  EXPECT_THAT(data_error_of(DataLoader(Subset(by_sample, some), {.batch_size = 3})),
              HasSubstr("(sample 17)"));
  const FailingBatch by_batch;
  EXPECT_THAT(data_error_of(DataLoader(Subset(by_batch, some), {.batch_size = 3})),
              HasSubstr("samples 30, 17, 2)"));
  struct Ragged {
    int64_t size() const { return 40; }
    at::Tensor get(int64_t index) const { return torch::zeros({index == 17 ? 2 : 3}); }
  };
  const Ragged ragged;
  EXPECT_THAT(data_error_of(DataLoader(Subset(ragged, some), {.batch_size = 3})),
              HasSubstr("(sample 17)"));
}

}  // namespace
}  // namespace argosy::data
