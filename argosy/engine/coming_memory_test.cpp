#include "argosy/engine/coming_memory.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace argosy::engine {
namespace {

/// Numbers that come when they are used, and go at the end of the outermost use.
class Numbers final : public ComingMemory {
 public:
  explicit Numbers(at::Tensor values) : values_(std::move(values)) {}
  void before_use(bool writes) noexcept override {
    ++uses;
    writes_ += writes ? 1 : 0;
    if (depth_++ == 0) {
      lent_ = values_.clone();
      lend(lent_);
    }
  }
  void after_use() noexcept override {
    if (--depth_ == 0) {
      if (writes_ > 0) {
        values_.copy_(lent_);
      }
      take_back();
    }
  }
  int uses = 0;
  [[nodiscard]] int writes() const { return writes_; }
  [[nodiscard]] const at::Tensor& values() const { return values_; }

 private:
  at::Tensor values_, lent_{};
  int depth_ = 0, writes_ = 0;
};

struct Weights {
  explicit Weights(const at::Tensor& values)
      : memory(std::make_shared<Numbers>(values)),
        flat(memory->make_flat(values.numel(), values.options())) {}
  std::shared_ptr<Numbers> memory;
  at::Tensor flat;
};

TEST(ComingMemory, IsThereWhileAnOperatorUsesIt) {
  const Weights weights(at::arange(6, at::kFloat));
  EXPECT_EQ(weights.flat.storage().data(), nullptr);
  EXPECT_EQ(weights.flat.sum().item<float>(), 15);
  EXPECT_EQ(weights.flat.storage().data(), nullptr);
  EXPECT_GT(weights.memory->uses, 0);
}

TEST(ComingMemory, ViewsBringNothingAndTheirUseDoes) {
  const Weights weights(at::arange(6, at::kFloat));
  const at::Tensor matrix = weights.flat.view({2, 3}).t().detach();
  EXPECT_EQ(weights.memory->uses, 0);
  EXPECT_EQ(matrix.mm(at::ones({2, 1})).flatten()[2].item<float>(), 7);
}

TEST(ComingMemory, WritesAreTold) {
  const Weights weights(at::arange(6, at::kFloat));
  weights.flat.view({2, 3}).mul_(2);
  EXPECT_GT(weights.memory->writes(), 0);
  EXPECT_EQ(weights.memory->values()[5].item<float>(), 10);
}

TEST(ComingMemory, ComesInBackwardToo) {
  const Weights weights(at::arange(6, at::kFloat));
  at::Tensor parameter = at::empty({0});
  parameter.set_data(weights.flat.view({3, 2}));
  parameter.requires_grad_(true);
  const at::Tensor x = at::ones({4, 2}, at::kFloat).requires_grad_(true);
  const at::Tensor loss = torch::nn::functional::linear(x, parameter).sum();
  EXPECT_EQ(weights.flat.storage().data(), nullptr);
  loss.backward();
  EXPECT_EQ(x.grad()[0][0].item<float>(), 0 + 2 + 4);
  EXPECT_EQ(parameter.grad()[0][0].item<float>(), 4);
}

TEST(ComingMemory, ComesForKernelsThatSaySo) {
  const Weights weights(at::arange(6, at::kFloat));
  {
    const DirectUse use({weights.flat, at::ones(2)}, /*writes=*/true);
    weights.flat.data_ptr<float>()[0] = 5;
  }
  EXPECT_EQ(weights.memory->values()[0].item<float>(), 5);
}

TEST(ComingMemory, GoesWithTheLastView) {
  std::weak_ptr<Numbers> gone;
  at::Tensor view;
  {
    Weights weights(at::arange(6, at::kFloat));
    gone = weights.memory;
    view = weights.flat.narrow(0, 2, 2);
  }
  EXPECT_EQ(view.sum().item<float>(), 5) << "a view keeps it alive";
  EXPECT_NE(coming_memory_of(view), nullptr);
  view = at::Tensor();
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(coming_memory_of(at::ones(2)), nullptr);
}

TEST(ComingMemory, IsFoundFromAllThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int k = 0; k < 50; ++k) {
        const Weights weights(at::full({10}, i, at::kFloat));
        EXPECT_EQ(weights.flat.sum().item<float>(), 10.0F * static_cast<float>(i));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace argosy::engine
