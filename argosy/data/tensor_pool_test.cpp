#include "argosy/data/tensor_pool.h"

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

namespace argosy::data {
namespace {

TEST(TensorPool, MemoryComesBackWhenTheTensorDies) {
  TensorPool pool;
  at::Tensor tensor = pool.empty({100, 28}, at::kFloat);
  const void* memory = tensor.data_ptr();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
  tensor.reset();
  EXPECT_EQ(pool.stats().unused, 1U);
  EXPECT_EQ(pool.empty({28, 100}, at::kFloat).data_ptr(), memory);
  EXPECT_EQ(pool.stats().allocated, 1U);
  EXPECT_EQ(pool.stats().reused, 1U);
}

TEST(TensorPool, GivesChannelsLastMemory) {
  TensorPool pool;
  at::Tensor images = pool.empty({2, 3, 4, 5}, at::kFloat, at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(images.strides(), (std::vector<int64_t>{60, 1, 15, 3}));
  EXPECT_TRUE(images.is_contiguous(at::MemoryFormat::ChannelsLast));
  const void* memory = images.data_ptr();
  images.reset();
  EXPECT_EQ(pool.empty({2, 3, 4, 5}, at::kFloat).data_ptr(), memory);
  EXPECT_TRUE(pool.empty({0, 3, 4, 5}, at::kFloat, at::MemoryFormat::ChannelsLast)
                  .is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_THROW((void)pool.empty({3, 4, 5}, at::kFloat, at::MemoryFormat::ChannelsLast), UsageError);
  EXPECT_THROW((void)pool.empty({3}, at::kFloat, at::MemoryFormat::Preserve), UsageError);
}

TEST(TensorPool, CountsItsBytesWhereverTheyAre) {
  TensorPool pool({.keep = 1});
  at::Tensor a = pool.empty({100}, at::kByte);
  at::Tensor b = pool.empty({64}, at::kByte);
  EXPECT_EQ(pool.stats().bytes, 128U + 64U);
  a.reset();
  EXPECT_EQ(pool.stats().bytes, 128U + 64U);  // it waits
  b.reset();
  EXPECT_EQ(pool.stats().bytes, 128U);  // one too many to keep
}

TEST(TensorPool, TakesOtherMemoryAndLetsItGo) {
  const auto memory = std::make_shared<std::vector<char>>(1000);
  std::vector<size_t> asked;
  {
    TensorPool pool({.keep = 1, .allocate = [&](size_t bytes) {
                       asked.push_back(bytes);
                       return std::shared_ptr<void>(memory, memory->data());
                     }});
    at::Tensor tensor = pool.empty({10}, at::kFloat);
    EXPECT_EQ(tensor.data_ptr(), memory->data());
    tensor.reset();
    tensor = pool.empty({16}, at::kFloat);
    EXPECT_EQ(pool.stats().reused, 1U);
    EXPECT_EQ(memory.use_count(), 2);
  }
  EXPECT_EQ(asked, std::vector<size_t>{64});
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(TensorPool, ViewsSlicesAndGraphsKeepTheirMemory) {
  TensorPool pool;
  std::vector<at::Tensor> kept;
  torch::Tensor weight = torch::ones({4}, torch::requires_grad());
  for (int i = 0; i < 5; ++i) {
    at::Tensor batch = pool.empty({3, 4}, at::kFloat).fill_(i);
    if (i == 0) {
      kept.push_back(batch.select(0, 2));
    } else if (i == 1) {
      kept.push_back(batch.view({12}).slice(0, 5, 7));
    } else if (i == 2) {
      kept.push_back((batch * weight).sum());  // the graph saved `batch` for backward
    } else if (i == 3) {
      kept.push_back(batch.detach().t());
    }
  }
  EXPECT_EQ(pool.stats().allocated, 5U);
  EXPECT_EQ(pool.stats().unused, 1U);  // only the last was dropped
  EXPECT_TRUE(at::equal(kept[0], torch::full({4}, 0.F)));
  EXPECT_TRUE(at::equal(kept[1], torch::full({2}, 1.F)));
  kept[2].backward();
  EXPECT_TRUE(at::equal(weight.grad(), torch::full({4}, 6.F)));
  EXPECT_TRUE(at::equal(kept[3], torch::full({4, 3}, 3.F)));
  kept.clear();
  EXPECT_EQ(pool.stats().unused, 5U);
}

TEST(TensorPool, ABlockServesSmallerRequestsButNotMuchSmaller) {
  TensorPool pool;
  pool.empty({1000}, at::kByte).reset();
  EXPECT_EQ(pool.empty({600}, at::kByte).numel(), 600);
  EXPECT_EQ(pool.stats().reused, 1U);
  (void)pool.empty({100}, at::kByte);
  (void)pool.empty({2000}, at::kByte);
  EXPECT_EQ(pool.stats().allocated, 3U);
}

TEST(TensorPool, KeepsNoMoreThanItsLimit) {
  TensorPool pool({.keep = 2});
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 5; ++i) {
    tensors.push_back(pool.empty({10}, at::kLong));
  }
  tensors.clear();
  EXPECT_EQ(pool.stats().unused, 2U);
}

TEST(TensorPool, TensorsOutliveThePool) {
  at::Tensor tensor;
  {
    TensorPool pool;
    tensor = pool.empty({4}, at::kLong).fill_(7);
  }
  EXPECT_EQ(tensor.sum().item<int64_t>(), 28);
}

TEST(TensorPool, NothingNeedsNoMemory) {
  TensorPool pool;
  EXPECT_EQ(pool.empty({0, 28}, at::kFloat).sizes(), (std::vector<int64_t>{0, 28}));
  EXPECT_EQ(pool.stats().allocated, 0U);
}

TEST(TensorPool, LiveTensorsOfManyThreadsNeverShareMemory) {
  TensorPool pool({.keep = 4});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      std::vector<at::Tensor> held(3);
      for (int64_t i = 0; i < 300; ++i) {
        at::Tensor& tensor = held[i % 3];
        if (tensor.defined()) {
          EXPECT_EQ(tensor[0].item<int64_t>(), t * 1000 + i - 3);
          EXPECT_EQ(tensor[63].item<int64_t>(), t * 1000 + i - 3);
        }
        tensor = pool.empty({64}, at::kLong).fill_(t * 1000 + i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace argosy::data
