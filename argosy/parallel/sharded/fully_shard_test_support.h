#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/parallel/ddp/divided_step_test_support.h"
#include "argosy/parallel/sharded/fully_shard.h"

namespace argosy::parallel::testing {

/// A user's own model: a list of blocks between two layers.
struct BlocksImpl : torch::nn::Module {
  explicit BlocksImpl(int64_t width = 24, int64_t layers = 4) {
    in = register_module("in", torch::nn::Linear(3, width));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int64_t i = 0; i < layers; ++i) {
      blocks->push_back(
          torch::nn::Sequential(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})),
                                torch::nn::Linear(width, 2 * width),
                                torch::nn::GELU(),
                                torch::nn::Linear(2 * width, width)));
    }
    out = register_module("out", torch::nn::Linear(width, 2));
    fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor hidden = in(x);
    for (const auto& block : *blocks) {
      hidden = hidden + block->as<torch::nn::Sequential>()->forward(hidden.to(at::kFloat));
    }
    return out(hidden);
  }
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::ModuleList blocks{nullptr};
};
TORCH_MODULE(Blocks);

using ShardedBlocks = DistributedDataParallel<Blocks>;
struct OptimizerCase {
  std::string name{};
  std::function<optim::Optimizer(const ShardedBlocks&)> make{};
};

inline std::vector<OptimizerCase> optimizers() {
  return {
      {"SGD", [](const auto& model) { return optim::SGD(model, {.lr = 0.1}); }},
      {"Momentum",
       [](const auto& model) { return optim::Momentum(model, {.lr = 0.02, .nesterov = true}); }},
      {"Adam", [](const auto& model) { return optim::Adam(model, {.lr = 0.02}); }},
      {"AdamW of two groups, clipped by all",
       [](const auto& model) {
         return optim::AdamW(
             model,
             {.lr = 0.03, .amsgrad = true, .grad_clip = optim::ClipGradByGlobalNorm(0.1)},
             {{.names = {"*.bias"}, .lr_scale = 3, .weight_decay = 0.0}});
       }},
      {"RMSProp, clipped by its own",
       [](const auto& model) {
         return optim::RMSProp(model,
                               {.lr = 0.01,
                                .momentum = 0.5,
                                .centered = true,
                                .grad_clip = optim::ClipGradByNorm(0.05)});
       }},
      {"Adagrad", [](const auto& model) { return optim::Adagrad(model, {.lr = 0.05}); }},
      {"Lamb", [](const auto& model) { return optim::Lamb(model, {.lr = 0.02}); }},
      {"Lars", [](const auto& model) { return optim::Lars(model, {.lr = 0.5}); }}};
}

inline ShardOptions small_units() {
  return {.unit_bytes = 0};
}

/// Copies of a model's parameters and of its optimizer's state. Collective.
inline std::vector<at::Tensor> results_of(const auto& model, const optim::Optimizer& optimizer) {
  std::vector<at::Tensor> results;
  for (const at::Tensor& parameter : model.parameters()) {
    results.push_back(parameter.detach().clone());
  }
  for (const auto& [name, states] : optimizer.state_dict().parameters) {
    for (const auto& [state, tensor] : states) {
      results.push_back(tensor.clone());
    }
  }
  return results;
}

/// A divided model beside one that each rank has.
struct Pair {
  Pair(const comm::Group& group,
       const OptimizerCase& recipe,
       const ShardOptions& shard = small_units(),
       bool share = true)
      : sharded(fully_shard(Blocks(), group, {.shared_memory = share, .shard = shard})),
        plain(Blocks(), group, {.shared_memory = false}),
        optimizer(recipe.make(sharded)),
        plain_optimizer(recipe.make(plain)) {
    EXPECT_TRUE(sharded.divide_step(optimizer));
  }
  void backward(const comm::Group& group, int step) {
    for (ShardedBlocks* const model : {&sharded, &plain}) {
      (*model)(values({4, 3}, group.rank() + 10.0 * step, at::kFloat)).square().mean().backward();
    }
  }
  void update() {
    for (optim::Optimizer* const each : {&optimizer, &plain_optimizer}) {
      each->step();
      each->zero_grad();
    }
  }
  void compare(const std::string& what) {
    const auto a = sharded.parameters();
    const auto b = plain.parameters();
    for (size_t i = 0; i < a.size(); ++i) {
      expect_same_bits(a[i], b[i], what + ", parameter " + std::to_string(i));
    }
  }
  void compare_gradients(const std::string& what) {
    const auto a = sharded.parameters();
    const auto b = plain.parameters();
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].grad().defined(), b[i].grad().defined()) << what << i;
      if (a[i].grad().defined()) {
        expect_same_bits(a[i].grad(), b[i].grad(), what + ", gradient " + std::to_string(i));
      }
    }
  }
  ShardedBlocks sharded, plain;
  optim::Optimizer optimizer, plain_optimizer;
};

}  // namespace argosy::parallel::testing
