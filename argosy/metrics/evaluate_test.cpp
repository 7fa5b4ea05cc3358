#include "argosy/metrics/evaluate.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/metrics/accuracy.h"

namespace argosy::metrics {
namespace {

using Batches = std::vector<std::pair<at::Tensor, at::Tensor>>;

/// Gives its input back and remembers how it was called.
struct SpyImpl : torch::nn::Module {
  SpyImpl() {
    frozen = register_module("frozen", torch::nn::Dropout(0.5));
    active = register_module("active", torch::nn::Dropout(0.5));
    frozen->eval();
  }
  at::Tensor forward(const at::Tensor& x) {
    if (throws) {
      throw std::runtime_error("forward failed");
    }
    was_training = was_training || is_training() || active->is_training();
    had_grad = had_grad || at::GradMode::is_enabled();
    return active(x);
  }
  torch::nn::Dropout frozen{nullptr}, active{nullptr};
  bool was_training = false, had_grad = false, throws = false;
};
TORCH_MODULE(Spy);

Batches batches() {
  return {{torch::tensor({{0.0, 1.0}, {0.0, 1.0}}), torch::tensor({1, 0})},
          {torch::zeros({0, 2}), torch::zeros({0}, torch::kLong)},
          {torch::tensor({{1.0, 0.0}}), torch::tensor({0})}};  // a short last batch
}

TEST(Evaluate, CountsEverySampleWithoutGradInEvaluationMode) {
  Spy model;
  EXPECT_EQ(evaluate(model, batches(), Accuracy()), 2.0 / 3);
  EXPECT_FALSE(model->was_training);
  EXPECT_FALSE(model->had_grad);
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(Evaluate, RestoresTheModeOfEverySubmodule) {
  Spy model;
  evaluate(model, batches(), Accuracy());
  EXPECT_TRUE(model->is_training());
  EXPECT_TRUE(model->active->is_training());
  EXPECT_FALSE(model->frozen->is_training());
  model->eval();
  evaluate(model, batches(), Accuracy());
  EXPECT_FALSE(model->is_training());
}

TEST(Evaluate, RestoresAfterAnException) {
  Spy model;
  model->throws = true;
  EXPECT_THROW(evaluate(model, batches(), Accuracy()), std::runtime_error);
  EXPECT_TRUE(model->active->is_training());
  EXPECT_FALSE(model->frozen->is_training());
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(Evaluate, KeepsAMetricThatIsPassedByName) {
  Spy model;
  Accuracy both({.topk = {1, 2}});
  EXPECT_EQ(evaluate(model, batches(), both), 2.0 / 3);
  EXPECT_EQ(both.values(), (std::vector<double>{2.0 / 3, 1.0}));
}

TEST(Evaluate, TakesModulesPointersAndSequentials) {
  const auto pointer = std::make_shared<SpyImpl>();
  EXPECT_EQ(evaluate(pointer, batches(), Accuracy()), 2.0 / 3);
  EXPECT_EQ(evaluate(*pointer, batches(), Accuracy()), 2.0 / 3);
  torch::nn::Sequential sequential(torch::nn::Identity{});
  EXPECT_EQ(evaluate(sequential, batches(), Accuracy()), 2.0 / 3);
}

/// What DistributedDataParallel looks like from here; its own forward must not be used.
struct Wrapper {
  Spy inner;
  const Spy& module() const { return inner; }
  at::Tensor operator()(const at::Tensor&) { throw std::runtime_error("communicates"); }
  void sync_buffers() { ++syncs; }
  [[nodiscard]] comm::Group group() const { return {}; }
  int syncs = 0;
};

TEST(Evaluate, UsesTheModelInsideAWrapper) {
  Wrapper model;
  EXPECT_EQ(evaluate(model, batches(), Accuracy()), 2.0 / 3);
  EXPECT_TRUE(model.inner->is_training());
  EXPECT_EQ(model.syncs, 1);
}

TEST(Evaluate, NoBatchesGiveNan) {
  Spy model;
  EXPECT_TRUE(std::isnan(evaluate(model, Batches(), Accuracy())));
}

}  // namespace
}  // namespace argosy::metrics
