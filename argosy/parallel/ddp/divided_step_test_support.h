#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/optim/optim.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/support/temp_dir.h"

namespace argosy::parallel::testing {

struct Recipe {
  std::string name{};
  std::function<optim::Optimizer(const DistributedDataParallel<TwoLayers>&)> make{};
};

inline std::vector<Recipe> recipes() {
  return {{"Adam", [](const auto& model) { return optim::Adam(model, {.lr = 0.02}); }},
          {"AdamW of two groups, clipped",
           [](const auto& model) {
             return optim::AdamW(
                 model,
                 {.lr = 0.03, .amsgrad = true, .grad_clip = optim::ClipGradByGlobalNorm(0.1)},
                 {{.names = {"*.bias"}, .lr_scale = 3, .weight_decay = 0.0}});
           }},
          {"Momentum",
           [](const auto& model) { return optim::Momentum(model, {.lr = 0.1, .nesterov = true}); }},
          {"SGD, which has no state",
           [](const auto& model) { return optim::SGD(model, {.lr = 0.1}); }}};
}

inline void expect_same_bits(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const at::Tensor x = a.detach().clone(at::MemoryFormat::Contiguous);
  const at::Tensor y = b.detach().clone(at::MemoryFormat::Contiguous);
  EXPECT_EQ(std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()), 0) << what << ": " << x << y;
}

inline void expect_same_bits(const DistributedDataParallel<TwoLayers>& a,
                             const DistributedDataParallel<TwoLayers>& b,
                             const std::string& what) {
  const std::vector<at::Tensor> x = a.parameters();
  const std::vector<at::Tensor> y = b.parameters();
  for (size_t i = 0; i < x.size(); ++i) {
    expect_same_bits(x[i], y[i], what + ", parameter " + std::to_string(i));
  }
}

inline void expect_same_bits(const optim::OptimizerState& a,
                             const optim::OptimizerState& b,
                             const std::string& what) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size()) << what;
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    for (const auto& [name, tensor] : a.parameters[i].second) {
      expect_same_bits(tensor, b.parameters[i].second.at(name), what + ", state " + name);
    }
  }
}

/// A model and its optimizer, with divided steps or without.
struct Trained {
  DistributedDataParallel<TwoLayers> model;
  optim::Optimizer optimizer;
  bool divided;

  Trained(const comm::Group& group,
          const Recipe& recipe,
          bool shared,
          int64_t hidden = 37,
          const DivideOptions& options = {},
          bool check_drift = true)
      : model(TwoLayers(0.5, hidden),
              group,
              {.first_bucket_bytes = 64,
               .bucket_cap_bytes = 256,
               .shared_memory = shared,
               .check_drift = check_drift}),
        optimizer(recipe.make(model)),
        divided(model.divide_step(optimizer, options)) {}

  void backward(const comm::Group& group, int step) {
    model(values({4, 3}, group.rank() + 10.0 * step)).square().sum().backward();
  }
  void step(const comm::Group& group, int step) {
    backward(group, step);
    optimizer.step();
    optimizer.zero_grad();
  }
};

/// The state of `first` goes on in `second`, and both come to the same bits.
inline void expect_state_can_be_loaded(const comm::Group& group, Trained& first, Trained& second) {
  for (int step = 0; step < 3; ++step) {
    first.step(group, step);
  }
  const optim::OptimizerState state = first.optimizer.state_dict().clone();
  second.step(group, 7);  // state of its own, which goes
  {
    torch::NoGradGuard no_grad;
    const auto from = first.model.parameters();
    auto to = second.model.parameters();
    for (size_t i = 0; i < from.size(); ++i) {
      to[i].copy_(from[i]);
    }
  }
  second.optimizer.load_state_dict(state);
  expect_same_bits(second.optimizer.state_dict(), state, "loaded");
  for (int step = 3; step < 6; ++step) {
    first.step(group, step);
    second.step(group, step);
  }
  expect_same_bits(first.model, second.model, "after three more steps");
  expect_same_bits(first.optimizer.state_dict(), second.optimizer.state_dict(), "its state");
}

/// Types, sizes and layouts side by side, of which some leave a rank without a share.
struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    const auto add = [&](const char* name, const at::Tensor& tensor) {
      return register_parameter(name, tensor);
    };
    scalar = add("scalar", values({}, 1, at::kFloat));
    wide = add("wide", values({300}, 2, at::kDouble));
    empty = add("empty", at::empty({0}, at::kFloat));
    image = add("image",
                values({4, 3, 5, 5}, 3, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast));
    transposed = add("transposed", values({7, 9}, 4, at::kFloat).t());
  }
  torch::Tensor forward(double x) {
    return scalar.square() * x + (wide * x).sin().sum().to(at::kFloat) + empty.sum() +
           (image * x).cos().sum() + (transposed * x).sin().sum();
  }
  torch::Tensor scalar, wide, empty, image, transposed;
};
TORCH_MODULE(Mixed);

/// Both train on over a join, from which each rank goes at its own step, and come to the same bits.
inline void expect_same_bits_after_a_join(const comm::Group& group, Trained& one, Trained& plain) {
  for (Trained* each : {&one, &plain}) {
    each->step(group, 0);
    auto join = each->model.join();
    for (int step = 1; step < 3 + group.rank(); ++step) {
      each->step(group, step);
    }
    join.finish();
  }
  expect_same_bits(one.model, plain.model, "after the join");
}

inline comm::Group process_group(const test::TempDir& folder, int rank, int size) {
  return comm::connect({.backend = "shm",
                        .store = rendezvous::file_store((folder.path() / "store").string()),
                        .rank = rank,
                        .size = size,
                        .timeout = std::chrono::seconds(20)});
}

}  // namespace argosy::parallel::testing
