// fit_peer FOLDER: two ranks train a small network on pictures that are made up, with all that
// watches a training: FOLDER/run is the run's folder with its page, logs for TensorBoard and
// VisualDL, a timeline; FOLDER/truth.json has the figures as the callbacks were told them.
// fit_peer FOLDER UPDATE: one rank goes on where FOLDER/run ends and is killed after this update.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <torch/torch.h>

#include "argosy/data/tensor_dataset.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/optim/lr_cycle.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/train.h"
#include "argosy/train/train_test_support.h"

#include <nlohmann/json.hpp>

namespace {

using namespace argosy;

constexpr int64_t kSide = 32;

/// A disc, a square, a cross or stripes, somewhere, in some colors, with noise.
data::TensorDataset<2> shapes(int64_t samples, uint64_t seed) {
  torch::manual_seed(seed);
  const at::Tensor labels = torch::arange(samples).remainder(4);
  const at::Tensor rows = torch::arange(kSide).unsqueeze(1).to(torch::kFloat);
  const at::Tensor columns = rows.t();
  const at::Tensor pictures = torch::empty({samples, 3, kSide, kSide});
  for (int64_t i = 0; i < samples; ++i) {
    const at::Tensor y = rows - (12 + 8 * torch::rand({}));
    const at::Tensor x = columns - (12 + 8 * torch::rand({}));
    const at::Tensor masks[] = {(x * x + y * y).sqrt() < 9,
                                torch::maximum(x.abs(), y.abs()) < 8,
                                torch::minimum(x.abs(), y.abs()) < 3,
                                ((x + 64).remainder(8) < 4).expand({kSide, kSide})};
    const at::Tensor mask = masks[i % 4].to(torch::kFloat);
    const at::Tensor color = 0.3 + 0.7 * torch::rand({3, 1, 1});
    const at::Tensor noise = 0.2 * torch::rand({3, kSide, kSide});
    pictures[i] = (mask * color + (1 - mask) * 0.4 * torch::rand({3, 1, 1}) + noise - 0.7) / 0.3;
  }
  return data::TensorDataset<2>(pictures, labels);
}

struct ShapesNetImpl : torch::nn::Module {
  ShapesNetImpl() {
    conv1 = register_module(
        "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 5).stride(2).padding(2)));
    conv2 = register_module(
        "conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3).stride(2).padding(1)));
    fc = register_module("fc", torch::nn::Linear(16 * 64, 4));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return fc->forward(torch::relu(conv2->forward(torch::relu(conv1->forward(x)))).flatten(1));
  }
  torch::nn::Conv2d conv1{nullptr};
  torch::nn::Conv2d conv2{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ShapesNet);

/// What callbacks are told, for the comparison with what the logs say.
struct Truth : train::Callback {
  nlohmann::ordered_json* all;
  explicit Truth(nlohmann::ordered_json& into) : all(&into) {}
  void on_train_batch_end(const train::Step& step) override {
    if (!step.logs.empty()) {
      (*all)["train"].push_back(
          {{"step", step.step}, {"loss", step.loss}, {"lr", step.lr}, {"acc", step.logs["acc"]}});
    }
  }
  void on_before_update(const train::Step& step) override {
    if (step.step % 100 == 0) {
      for (const auto& [name, parameter] : step.model.parameters()) {
        const auto grad = parameter.grad().to(torch::kDouble);
        (*all)["gradients"].push_back({{"name", name},
                                       {"step", step.step},
                                       {"num", grad.numel()},
                                       {"sum", grad.sum().item<double>()},
                                       {"max", grad.max().item<double>()}});
      }
    }
  }
  void on_epoch_end(const train::Epoch& epoch) override {
    (*all)["eval"].push_back({{"epoch", epoch.epoch + 1},
                              {"step", epoch.step},
                              {"loss", epoch.logs["eval_loss"]},
                              {"acc", epoch.logs["eval_acc"]}});
  }
};

void fit(const std::string& folder, int rank) {
  torch::manual_seed(1);
  const ShapesNet net;
  const optim::SGD optimizer(net, {.lr = 0.01, .momentum = 0.9});
  train::Model model(net);
  model.prepare(optimizer,
                loss::CrossEntropy(),
                {metrics::Accuracy()},
                {.schedule = optim::per_step(
                     optim::CosineAnnealingLR(optimizer, {.t_max = 400, .eta_min = 1e-4}))});
  nlohmann::ordered_json truth;
  model.fit(shapes(1600, 2),
            shapes(120, 3),
            {.batch_size = 8,
             .epochs = 4,
             .num_workers = 1,
             .run_dir = folder + "/run",
             .callbacks = {Truth(truth),
                           train::TensorBoard({}, {.histogram_freq = 100}),
                           train::VisualDL({}, {.histogram_freq = 100})},
             .data = {.seed = 7},
             .log = {.verbose = 0, .freq = 10, .hyperparameters = {{"dropout", "0.3"}}}});
  if (rank == 0) {
    std::ofstream(folder + "/truth.json") << truth.dump();
  }
}

/// Kills the process, when the checkpoints before are on the disk.
struct KillAfter : train::Callback {
  int64_t step;
  explicit KillAfter(int64_t at) : step(at) {}
  void on_train_batch_end(const train::Step& now) override {
    if (now.step == step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      std::raise(SIGKILL);
    }
  }
};

void fit_until(const std::string& folder, int64_t update) {
  torch::manual_seed(1);
  const ShapesNet net;
  train::Model model(net);
  model.prepare(optim::SGD(net, {.lr = 0.05}), loss::CrossEntropy(), {metrics::Accuracy()});
  model.fit(shapes(160, 2),
            shapes(40, 3),
            {.batch_size = 8,
             .epochs = 3,
             .run_dir = folder + "/run",
             .resume = train::Resume::kAuto,
             .callbacks = {KillAfter(update),
                           train::TensorBoard({}, {.histogram_freq = 10}),
                           train::VisualDL(),
                           train::CsvLogger()},
             .checkpoint = {.every_epochs = 100, .every_steps = 7},
             .log = {.verbose = 0, .freq = 1}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "fit";
  std::filesystem::create_directories(folder);
  if (argc > 2) {
    argosy::train::testing::run_job(1, [&](int) { fit_until(folder, std::stoll(argv[2])); });
    return 0;
  }
  argosy::train::testing::run_job(2, [&](int rank) { fit(folder, rank); });
  return 0;
}
