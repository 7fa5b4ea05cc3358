/// Training, evaluation, prediction and checkpoints of a network on a device: as on the CPU.
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/train/callbacks/early_stopping.h"
#include "argosy/train/callbacks/gradient_monitor.h"
#include "argosy/train/callbacks/layer_inspector.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/on_devices.h"

namespace argosy::train {
namespace {

using testing::blobs;
using testing::kClasses;
using testing::kFeatures;
using testing::run_job;
using testing::SignalAt;

/// With what draws random numbers and what keeps statistics. Before a norm a bias has no gradient
/// but rounding errors, which Adam would make as large as any other.
struct DeviceNetImpl : torch::nn::Module {
  explicit DeviceNetImpl(double dropout = 0) {
    const auto no_bias = torch::nn::LinearOptions(kFeatures, 8).bias(false);
    body = register_module("body",
                           torch::nn::Sequential(torch::nn::Linear(no_bias),
                                                 torch::nn::BatchNorm1d(8),
                                                 torch::nn::ReLU(),
                                                 torch::nn::Dropout(dropout),
                                                 torch::nn::Linear(8, kClasses)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return body->forward(x); }
  torch::nn::Sequential body{nullptr};
};
TORCH_MODULE(DeviceNet);

DeviceNet net_on(at::Device device, double dropout) {
  torch::manual_seed(7);
  DeviceNet net(dropout);
  net->to(device);
  return net;
}

Model prepared(const DeviceNet& net) {
  optim::Adam optimizer(net, {.lr = 0.05});
  Model model(net);
  model.prepare(
      optimizer,
      loss::CrossEntropy({.weight = torch::tensor({1.0F, 2.0F, 0.5F}), .ignore_index = 1}),
      {metrics::Accuracy()},
      {.schedule = optim::per_step(optim::CosineAnnealingLR(optimizer, {.t_max = 40})),
       .ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
  return model;
}

FitOptions options_in(const std::string& folder) {
  return {.batch_size = 4,
          .epochs = 2,
          .accumulate_grad_batches = 2,
          .data = {.seed = 5},
          .checkpoint = {.dir = folder, .on_signal = OnSignal::kSaveAndReturn},
          .log = {.verbose = 0}};
}

std::string hash(const DeviceNet& net) {
  return checkpoint::weights_hash(engine::state_dict(net));
}

class TrainOnDevices : public test::OnDevicesInProcesses {
 protected:
  /// CUDA's generator draws other numbers than the CPU's.
  [[nodiscard]] double dropout() const { return is_cuda() ? 0 : 0.2; }
  void expect_same_weights(const DeviceNet& got, const DeviceNet& wanted) const {
    const engine::StateDict own = engine::state_dict(got);
    for (const auto& [name, tensor] : engine::state_dict(wanted)) {
      expect_equal(own.at(name), tensor, name);
    }
  }
  void expect_same_figures(const Logs& got, const Logs& wanted) const {
    if (is_cuda()) {
      EXPECT_NEAR(got["loss"], wanted["loss"], 1e-3);
    } else {
      EXPECT_EQ(got.to_string(), wanted.to_string());
      EXPECT_EQ(got["loss"], wanted["loss"]);
    }
  }
};

TEST_P(TrainOnDevices, FitEvaluateAndPredict) {
  for (const int ranks : {1, 2}) {
    const test::TempDir folder;
    run_job(ranks, [&](int rank) {
      const auto set = blobs(48);
      std::vector<DeviceNet> nets;
      std::vector<History> histories;
      std::vector<Logs> figures;
      std::vector<std::vector<at::Tensor>> predictions;
      for (const at::Device where : {at::Device(at::kCPU), device(rank)}) {
        nets.push_back(net_on(where, dropout()));
        Model model = prepared(nets.back());
        FitOptions options = options_in((folder.path() / where.str()).string());
        options.callbacks = {GradientMonitor(),
                             EarlyStopping({.patience = 5, .restore_best_weights = true})};
        torch::manual_seed(11);
        histories.push_back(model.fit(set, set, options));
        figures.push_back(model.evaluate(set, {.batch_size = 4, .verbose = 0}));
        predictions.push_back(model.predict(set, {.batch_size = 4, .verbose = 0}));
      }
      expect_same_weights(nets[1], nets[0]);
      ASSERT_EQ(histories[1].epochs.size(), histories[0].epochs.size());
      for (std::size_t i = 0; i < histories[0].epochs.size(); ++i) {
        expect_same_figures(histories[1].epochs[i], histories[0].epochs[i]);
      }
      expect_same_figures(figures[1], figures[0]);
      ASSERT_EQ(predictions[1].size(), 1U);
      EXPECT_TRUE(predictions[1][0].is_cpu());
      expect_equal(predictions[1][0], predictions[0][0]);
      EXPECT_EQ(nets[1]->parameters()[0].device(), device(rank));
    });
  }
}

TEST_P(TrainOnDevices, ResumeFromAnyDeviceOnAnyOther) {
  for (const int ranks : {1, 2}) {
    const test::TempDir folder;
    run_job(ranks, [&](int rank) {
      const auto set = blobs(48);
      const at::Device there = device(rank), other = device(rank + 1), here = at::kCPU;
      int number = 0;
      for (const auto& [from, to] :
           {std::pair(there, there), {there, here}, {here, there}, {there, other}}) {
        const std::string run = folder.path() / std::to_string(number++);
        const bool elsewhere = is_cuda() && from != to;
        const double rate = elsewhere ? dropout() : 0.2;
        const DeviceNet whole = net_on(is_cuda() ? there : here, rate);
        torch::manual_seed(11);
        (void)prepared(whole).fit(set, set, options_in(run + "_whole"));
        FitOptions options = options_in(run);
        options.callbacks = {SignalAt(3)};
        const DeviceNet begun = net_on(from, rate);
        torch::manual_seed(11);
        const History cut = prepared(begun).fit(set, set, options);
        ASSERT_EQ(cut.ended, Ended::kPreempted);
        const DeviceNet net = net_on(to, rate);
        torch::manual_seed(99);
        options.callbacks.clear();
        options.resume = Resume::kMust;
        (void)prepared(net).fit(set, set, options);
        if (elsewhere) {
          expect_same_weights(net, whole);
        } else {
          EXPECT_EQ(hash(net), hash(whole)) << from << " to " << to;
        }
        EXPECT_EQ(net->parameters()[0].device(), to);
      }
    });
  }
}

TEST_P(TrainOnDevices, FilesAreReadWhereverTheyWereWritten) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const at::Device there = device(1);
    const DeviceNet net = net_on(there, dropout());
    const Model model(net);
    for (const char* ending : {".pt", ".safetensors", ""}) {
      const std::string path = (folder.path() / "weights").string() + ending;
      model.save(path);
      for (const at::Device where : {at::Device(at::kCPU), device(0), there}) {
        torch::manual_seed(99);
        DeviceNet other;
        other->to(where);
        Model(other).load(path);
        expect_same_weights(other, net);
        for (const auto& [name, tensor] :
             checkpoint::read_weights(path, {.map_location = where.str()})) {
          EXPECT_EQ(tensor.device(), where) << name;
          expect_equal(tensor, engine::state_dict(net).at(name), name);
        }
      }
      EXPECT_THROW((void)checkpoint::read_weights(
                       path, {.map_location = at::Device(there.type(), 99).str()}),
                   UsageError);
    }
  });
}

TEST_P(TrainOnDevices, BatchByBatchWithTensorsOfTheCpu) {
  run_job(1, [&](int) {
    const at::Tensor x = torch::sin(torch::arange(5 * kFeatures)).reshape({5, kFeatures});
    const at::Tensor labels = torch::arange(5).remainder(kClasses);
    std::vector<at::Tensor> outputs;
    std::vector<Logs> figures;
    for (const at::Device where : {at::Device(at::kCPU), device()}) {
      DeviceNet net = net_on(where, 0);
      Model model = prepared(net);
      figures.push_back(model.train_batch({x}, {labels}));
      figures.push_back(model.eval_batch({x}, {labels}));
      outputs.push_back(model.predict_batch({x})[0]);
      EXPECT_EQ(outputs.back().device(), where);
    }
    expect_same_figures(figures[2], figures[0]);
    expect_same_figures(figures[3], figures[1]);
    expect_equal(outputs[1], outputs[0]);
  });
}

TEST_P(TrainOnDevices, CallbacksThatLookAtTensors) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(12);
    const DeviceNet net = net_on(device(), dropout());
    const std::string path = (folder.path() / "layers.jsonl").string();
    FitOptions options = options_in((folder.path() / "run").string());
    options.run_dir = (folder.path() / "page").string();
    options.callbacks = {LayerInspector({.print = false, .path = path})};
    (void)prepared(net).fit(set, set, options);
    EXPECT_GT(std::filesystem::file_size(path), 100U);
    EXPECT_TRUE(std::filesystem::exists(options.run_dir + "/index.html"));
  });
}

ARGOSY_ON_DEVICES(TrainOnDevices);

}  // namespace
}  // namespace argosy::train
