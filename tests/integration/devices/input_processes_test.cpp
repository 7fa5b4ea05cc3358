/// fit(), evaluate() and predict() with batches that are copied ahead: the bits of the CPU.
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/data/data_loader.h"
#include "argosy/optim/adam.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/on_devices.h"

namespace argosy::train {
namespace {

using testing::kClasses;
using testing::kFeatures;
using testing::run_job;
using testing::SignalAt;
using testing::SmallNet;

/// Points around three centres, other ones in each epoch.
struct Drawn {
  int64_t size() const { return 60; }
  std::tuple<at::Tensor, int64_t> get(int64_t index, data::Random& random) const {
    const int64_t label = index % kClasses;
    return {torch::full({kFeatures}, random.normal()) + torch::arange(kFeatures) * label, label};
  }
};

/// Where the batches of the training were, and in which stream they came.
struct WhereBatchesAre : Callback {
  at::Device device;
  int64_t seen = 0;
  explicit WhereBatchesAre(at::Device where) : device(where) {}
  void on_train_batch_begin(const Step& now) override {
    EXPECT_EQ(now.inputs[0].device(), device);
    if (device.type() == test::type_of_second_device()) {
      EXPECT_NE(test::stream_of_last_copy_to(device).id(), 0) << "not copied ahead";
    }
    ++seen;
  }
};

class TrainingInput : public test::OnDevicesInProcesses {
 protected:
  [[nodiscard]] static SmallNet net_on(at::Device device) {
    SmallNet net = testing::small_net();
    net->to(device);
    return net;
  }
  [[nodiscard]] static Model prepared(const SmallNet& net) {
    Model model(net);
    model.prepare(optim::Adam(net, {.lr = 0.02}), loss::CrossEntropy(), {metrics::Accuracy()});
    return model;
  }
  [[nodiscard]] static FitOptions options_in(const std::string& folder, int workers) {
    return {.batch_size = 4,
            .epochs = 2,
            .num_workers = workers,
            .data = {.seed = 5},
            .checkpoint = {.dir = folder, .on_signal = OnSignal::kSaveAndReturn},
            .log = {.verbose = 0}};
  }
  void expect_same(const SmallNet& got, const SmallNet& wanted) const {
    const engine::StateDict own = engine::state_dict(got);
    for (const auto& [name, tensor] : engine::state_dict(wanted)) {
      expect_equal(own.at(name), tensor, name);
    }
  }
};

TEST_P(TrainingInput, FitEvaluateAndPredictWithThreads) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    std::vector<SmallNet> nets;
    std::vector<Logs> figures;
    std::vector<at::Tensor> predictions;
    for (const at::Device where : {at::Device(at::kCPU), device(1)}) {
      nets.push_back(net_on(where));
      Model model = prepared(nets.back());
      FitOptions options = options_in((folder.path() / where.str()).string(), 2);
      options.callbacks = {WhereBatchesAre(where)};
      (void)model.fit(Drawn(), Drawn(), options);
      const EvaluateOptions evaluating{.batch_size = 7, .verbose = 0, .num_workers = 2};
      figures.push_back(model.evaluate(Drawn(), evaluating));
      predictions.push_back(
          model.predict(Drawn(), {.batch_size = 7, .verbose = 0, .num_workers = 2})[0]);
      data::DataLoader loader(Drawn(), {.batch_size = 6, .shuffle = true, .num_workers = 1});
      (void)model.fit(loader, {.epochs = 2, .log = {.verbose = 0}});
    }
    expect_same(nets[1], nets[0]);
    expect_equal(predictions[1], predictions[0]);
    EXPECT_NEAR(figures[1]["loss"], figures[0]["loss"], is_cuda() ? 1e-3 : 0);
  });
}

TEST_P(TrainingInput, ResumesAmidAnEpochToTheBit) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const SmallNet whole = net_on(device());
    (void)prepared(whole).fit(Drawn(), options_in((folder.path() / "whole").string(), 2));
    for (const int64_t step : {1, 7, 14, 15, 22}) {
      FitOptions options = options_in((folder.path() / std::to_string(step)).string(), 2);
      options.callbacks = {SignalAt(step)};
      const History cut = prepared(net_on(device())).fit(Drawn(), options);
      ASSERT_EQ(cut.ended, Ended::kPreempted);
      ASSERT_EQ(cut.steps, step);
      options.callbacks = {WhereBatchesAre(device())};
      options.resume = Resume::kMust;
      const SmallNet net = net_on(device());
      (void)prepared(net).fit(Drawn(), options);
      EXPECT_EQ(checkpoint::weights_hash(engine::state_dict(net)),
                checkpoint::weights_hash(engine::state_dict(whole)))
          << step;
    }
  });
}

// Of three processes one is a spare.
TEST_P(TrainingInput, VirtualRanksHaveTheSameBatches) {
  const test::TempDir folder;
  const std::string weights = (folder.path() / "weights.pt").string();
  run_job(1,
          [&](int) {
            Model model = prepared(net_on(at::kCPU));
            (void)model.fit(Drawn(), options_in((folder.path() / "cpu").string(), 0));
            model.save(weights);
          },
          {.virtual_ranks = 2});
  for (const int ranks : {1, 2, 3}) {
    run_job(ranks,
            [&](int rank) {
              const SmallNet net = net_on(device(rank));
              const std::string run = (folder.path() / std::to_string(ranks)).string();
              (void)prepared(net).fit(Drawn(), options_in(run, 2));
              for (const auto& [name, tensor] : checkpoint::read_weights(weights)) {
                expect_equal(engine::state_dict(net).at(name), tensor, name);
              }
            },
            {.virtual_ranks = 2});
  }
}

ARGOSY_ON_DEVICES(TrainingInput);

}  // namespace
}  // namespace argosy::train
