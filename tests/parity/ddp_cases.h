#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "argosy/parallel/parallel.h"

// The network and the variants of DistributedDataParallel that are held against one process.
namespace argosy::parity {

struct Case {
  std::string name{};
  parallel::DdpOptions options{};
  bool tied = false;           ///< one linear layer stands at two places
  bool frozen = false;         ///< the first linear layer is not trained
  bool channels_last = false;  ///< parameters and images
  bool mixed = false;          ///< one parameter is f32
  bool skip_branch = false;    ///< odd steps leave a branch unused on odd ranks
  bool penalty = false;        ///< the loss has a penalty of the gradient at the images
  int micro_batches = 1;       ///< more than one: all but the last under no_sync
  bool zero_in_place = true;   ///< else gradients are set undefined
};

inline std::vector<Case> cases() {
  constexpr int64_t kTiny = 1;
  return {
      {.name = "plain"},
      {.name = "tiny buckets", .options = {.first_bucket_bytes = kTiny, .bucket_cap_bytes = kTiny}},
      {.name = "small buckets, undefined gradients",
       .options = {.first_bucket_bytes = 64, .bucket_cap_bytes = 700},
       .zero_in_place = false},
      {.name = "tied weights", .tied = true},
      {.name = "frozen layer, tiny buckets",
       .options = {.first_bucket_bytes = kTiny, .bucket_cap_bytes = kTiny},
       .frozen = true},
      {.name = "channels_last", .channels_last = true},
      {.name = "f32 and f64", .mixed = true},
      {.name = "second derivatives, tiny buckets",
       .options = {.first_bucket_bytes = kTiny, .bucket_cap_bytes = kTiny},
       .penalty = true},
      {.name = "no_sync", .micro_batches = 3},
      {.name = "no_sync, find_unused, tied",
       .options = {.bucket_cap_bytes = 300, .find_unused_parameters = true},
       .tied = true,
       .micro_batches = 2},
      {.name = "unused on some ranks",
       .options = {.first_bucket_bytes = kTiny,
                   .bucket_cap_bytes = kTiny,
                   .find_unused_parameters = true},
       .skip_branch = true},
  };
}

/// conv, relu, linear, linear (maybe the same one), a branch, and a scale that may be f32.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(const Case& c) {
    namespace nn = torch::nn;
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(2, 4, 3).padding(1)));
    in = register_module("in", nn::Linear(4 * 4 * 4, 6));
    a = register_module("a", nn::Linear(6, 6));
    b = register_module("b", c.tied ? a : nn::Linear(6, 6));
    branch = register_module("branch", nn::Linear(6, 6));
    scale = register_parameter("scale", at::full({6}, 0.9));
    out = register_module("out", nn::Linear(6, 3));
    to(torch::kDouble);
    if (c.mixed) {
      scale.set_data(scale.to(torch::kFloat));
    }
    torch::NoGradGuard no_grad;
    double seed = 0;
    for (auto& parameter : parameters()) {
      parameter.copy_((at::arange(parameter.numel(), torch::kDouble) * 0.37 + (seed += 1.1))
                          .sin()
                          .mul(0.3)
                          .reshape(parameter.sizes()));
    }
    if (c.frozen) {
      in->weight.requires_grad_(false);
      in->bias.requires_grad_(false);
    }
    if (c.channels_last) {
      conv->weight.set_data(conv->weight.contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
  at::Tensor forward(const at::Tensor& images, bool with_branch) {
    auto h = torch::relu(conv(images)).reshape({images.size(0), -1});
    h = b(a(in(h).tanh()).tanh()).tanh();
    if (with_branch) {
      h = h + branch(h);
    }
    return out(h * scale.to(torch::kDouble));
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::Linear in{nullptr}, a{nullptr}, b{nullptr}, branch{nullptr}, out{nullptr};
  at::Tensor scale;
};
TORCH_MODULE(Net);

struct Batch {
  at::Tensor images, targets;
};

/// Batch of one micro step of one rank: values from a formula, equal in every process.
inline Batch batch_of(const Case& c, int step, int micro, int rank, int64_t n = 4) {
  const double seed = step * 31 + micro * 7 + rank * 3;
  auto images =
      (at::arange(n * 2 * 4 * 4, torch::kDouble) * 1.7 + seed).sin().reshape({n, 2, 4, 4});
  auto targets = (at::arange(n * 3, torch::kDouble) * 0.9 + seed).cos().reshape({n, 3});
  return {c.channels_last ? images.contiguous(at::MemoryFormat::ChannelsLast) : images, targets};
}

/// The loss of a batch: a mean over its samples. `net`: of (images, with_branch).
template <typename Network>
at::Tensor loss_of(Network& net, const Case& c, const Batch& batch, bool with_branch) {
  const at::Tensor images = batch.images.detach().requires_grad_(c.penalty);
  const at::Tensor out = net(images, with_branch);
  const at::Tensor loss = torch::mse_loss(out, batch.targets);
  if (!c.penalty) {
    return loss;
  }
  const at::Tensor slope = torch::autograd::grad({out.sum()},
                                                 {images},
                                                 /*grad_outputs=*/{},
                                                 /*retain_graph=*/true,
                                                 /*create_graph=*/true)
                               .front();
  return loss + slope.pow(2).mean();
}

inline bool uses_branch(const Case& c, int step, int rank) {
  return !c.skip_branch || step % 2 == 0 || rank % 2 == 0;
}

/// p -= lr * grad, then the gradient becomes zero.
inline void descend(const std::vector<at::Tensor>& parameters, bool zero_in_place) {
  torch::NoGradGuard no_grad;
  for (auto parameter : parameters) {
    if (!parameter.grad().defined()) {
      continue;
    }
    parameter.sub_(parameter.grad(), 0.05);
    if (zero_in_place) {
      parameter.mutable_grad().zero_();
    } else {
      parameter.mutable_grad() = at::Tensor();
    }
  }
}

/// One step of one process over the batches of `ranks` ranks.
inline void step_alone(Net& net, const Case& c, int step, int ranks) {
  for (int micro = 0; micro < c.micro_batches; ++micro) {
    at::Tensor loss = at::zeros({}, torch::kDouble);
    std::vector<at::Tensor> images, targets;
    for (int rank = 0; rank < ranks; ++rank) {
      const Batch batch = batch_of(c, step, micro, rank);
      if (c.skip_branch) {  // ranks differ, so their batches cannot run as one
        loss = loss + loss_of(net, c, batch, uses_branch(c, step, rank)) / ranks;
      }
      images.push_back(batch.images);
      targets.push_back(batch.targets);
    }
    if (!c.skip_branch) {
      loss = loss_of(net, c, {at::cat(images), at::cat(targets)}, true);
    }
    loss.backward();
  }
  std::vector<at::Tensor> once;  // a tied parameter has two names
  for (const auto& parameter : net->parameters()) {
    if (std::none_of(once.begin(), once.end(), [&](auto& o) { return o.is_same(parameter); })) {
      once.push_back(parameter);
    }
  }
  descend(once, c.zero_in_place);
}

}  // namespace argosy::parity
