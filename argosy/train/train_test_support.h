#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "argosy/data/tensor_dataset.h"
#include "argosy/fleet/fleet.h"
#include "argosy/loss/cross_entropy.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/callback.h"
#include "argosy/train/model.h"

#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::train::testing {

constexpr int64_t kFeatures = 6;
constexpr int64_t kClasses = 3;

/// Points around three centres and which centre it is.
inline data::TensorDataset<2> blobs(int64_t samples) {
  const auto options = torch::TensorOptions().dtype(torch::kDouble);
  const at::Tensor index = torch::arange(samples, options).unsqueeze(1);
  const at::Tensor column = torch::arange(kFeatures, options).unsqueeze(0);
  const at::Tensor labels = torch::arange(samples).remainder(kClasses);
  const at::Tensor noise = torch::sin(index * 12.9898 + column * 78.233);
  const at::Tensor centres = torch::cos(labels.unsqueeze(1).to(torch::kDouble) * 2 + column);
  return data::TensorDataset<2>((noise + centres).to(torch::kFloat), labels);
}

struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    first = register_module("first", torch::nn::Linear(kFeatures, 8));
    second = register_module("second", torch::nn::Linear(8, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return second->forward(torch::relu(first->forward(x)));
  }
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
};
TORCH_MODULE(SmallNet);

/// Wide enough that each of four ranks has parts of its weights.
struct WideNetImpl : torch::nn::Module {
  WideNetImpl() {
    first = register_module("first", torch::nn::Linear(kFeatures, 96));
    second = register_module("second", torch::nn::Linear(96, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return second->forward(torch::relu(first->forward(x)));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(WideNet);

/// A net with the same weights in every process.
inline SmallNet small_net() {
  torch::manual_seed(7);
  return SmallNet();
}

/// The net with what fit() needs.
inline Model sgd_model(const SmallNet& net = small_net(),
                       const optim::SGDOptions& options = {.lr = 0.1},
                       std::vector<metrics::AnyMetric> metrics = {metrics::Accuracy()}) {
  Model model(net);
  model.prepare(optim::SGD(net, options), loss::CrossEntropy(), std::move(metrics));
  return model;
}

/// Asks fit() to leave after so many updates.
struct SignalAt : Callback {
  int64_t step;
  explicit SignalAt(int64_t at) : step(at) {}
  void on_train_batch_begin(const Step& now) override {
    if (now.step + 1 == step) {
      ::raise(SIGUSR1);
    }
  }
};

/// `fn(rank)` in `ranks` processes of one job; one rank: a process too, for fleet is global.
inline void run_job(int ranks,
                    const std::function<void(int rank)>& fn,
                    const fleet::DistributedStrategy& strategy = {}) {
  const test::TempDir folder;
  test::run_ranks(ranks,
                  [&](int rank) {
                    torch::set_num_threads(1);
                    fleet::init(strategy,
                                {.init_method = "file://" + folder.path().string() + "/store",
                                 .timeout = std::chrono::seconds(30),
                                 .rank = rank,
                                 .world_size = ranks});
                    fn(rank);
                    fleet::stop_worker();
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
}

/// What `fn` prints to a file that it is given.
inline std::string printed(const std::function<void(std::FILE*)>& fn) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const file = open_memstream(&text, &size);
  fn(file);
  std::fclose(file);
  std::string result(text, size);
  std::free(text);  // NOLINT: open_memstream's own
  return result;
}

}  // namespace argosy::train::testing
