// The scaler in the trainer: which updates are skipped, on all ranks, and that it goes on after a
// stop.
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/amp_test_support.h"
#include "argosy/train/callbacks/gradient_monitor.h"
#include "argosy/train/callbacks/lr_scheduler.h"
#include "argosy/train/model.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

using testing::adam_steps;
using testing::blobs;
using ::testing::Contains;
using testing::expect_same;
using ::testing::HasSubstr;
using testing::kFeatures;
using testing::kHigh;
using testing::loss_in_bfloat16;
using testing::loud_blobs;
using testing::run_job;
using testing::run_net;
using testing::SignalAt;
using testing::small_net;
using testing::SmallNet;
using testing::weights_of;

/// What hooks were told about skipped updates.
struct Watch : Callback {
  struct Seen {
    std::vector<bool> before{};
    std::vector<bool> end{};
    std::vector<double> scales{};
    std::vector<double> lrs{};
    double largest_gradient = 0;  // of updates that were made
  };
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  void on_train_batch_begin(const Step& step) override { EXPECT_FALSE(step.skipped); }
  void on_before_update(const Step& step) override {
    seen->before.push_back(step.skipped);
    for (const auto& [name, parameter] : step.model.parameters()) {
      if (!step.skipped) {
        seen->largest_gradient =
            std::max(seen->largest_gradient, parameter.grad().abs().max().item<double>());
      }
    }
  }
  void on_train_batch_end(const Step& step) override {
    if (step.updates) {
      seen->end.push_back(step.skipped);
      seen->lrs.push_back(step.lr);
      seen->scales.push_back(step.logs["loss_scale"]);
    }
  }
};

/// A training whose scale is so high that some updates are skipped, by hand.
struct ByHand {
  SmallNet net = small_net();
  optim::Adam optimizer{net, {.lr = 0.01}};
  optim::GradScaler scaler{kHigh};
  optim::ExponentialMovingAverage average{net, {.decay = 0.9}};
  std::vector<bool> skipped{};
  std::vector<double> scales{};
  std::vector<double> lrs{};

  void run(const data::TensorDataset<2>& set, int64_t batch_size, int64_t together, int epochs) {
    auto schedule = optim::ExponentialLR(optimizer, {.gamma = 0.97});
    data::DataLoader loader(
        set,
        fleet::distributed_batch_sampler(set.size(), {.batch_size = batch_size, .shuffle = true}));
    for (int epoch = 0; epoch < epochs; ++epoch) {
      int64_t batch = 0;
      for (auto& [x, y] : loader) {
        scaler.scale(loss_in_bfloat16(net, x, y) / static_cast<double>(together)).backward();
        if (++batch % together != 0) {
          continue;
        }
        lrs.push_back(optimizer.lr());
        const bool made = scaler.step(optimizer);
        scaler.update();
        optimizer.zero_grad();
        if (made) {
          average.update();
          schedule.step();
        }
        skipped.push_back(!made);
        scales.push_back(scaler.get_scale());
      }
    }
  }
};

TEST(Amp, ASkippedUpdateMovesNeitherWeightsNorOptimizerNorScheduleNorAverage) {
  for (const int64_t together : {1, 2}) {
    run_job(1, [&](int) {
      const auto set = loud_blobs(64);
      const SmallNet net = small_net();
      optim::Adam optimizer(net, {.lr = 0.01});
      Model model(net);
      model.prepare(optimizer,
                    loss::CrossEntropy(),
                    {},
                    {.schedule = optim::per_step(optim::ExponentialLR(optimizer, {.gamma = 0.97})),
                     .ema = optim::ExponentialMovingAverageOptions{.decay = 0.9},
                     .amp = AmpOptions{.scaler = kHigh}});
      const Watch watch;
      const History history = model.fit(set,
                                        {.batch_size = 4,
                                         .epochs = 3,
                                         .callbacks = {watch, GradientMonitor()},
                                         .accumulate_grad_batches = together,
                                         .log = {.verbose = 0, .freq = 1}});
      ByHand expected;
      expected.run(set, 4, together, 3);
      EXPECT_THAT(expected.skipped, Contains(true));
      EXPECT_THAT(expected.skipped, Contains(false));
      EXPECT_EQ(watch.seen->before, expected.skipped);
      EXPECT_EQ(watch.seen->end, expected.skipped);
      EXPECT_EQ(watch.seen->scales, expected.scales);
      EXPECT_EQ(watch.seen->lrs, expected.lrs);
      EXPECT_LT(watch.seen->largest_gradient, 1e6) << "hooks see unscaled gradients";
      expect_same(weights_of(net), weights_of(expected.net));
      EXPECT_EQ(adam_steps(optimizer), adam_steps(expected.optimizer));
      EXPECT_LT(adam_steps(optimizer), history.steps) << "skipped ones count as updates of fit()";
      EXPECT_EQ(history.steps, static_cast<int64_t>(expected.skipped.size()));
      EXPECT_EQ(history.epochs.back()["loss_scale"], expected.scales.back());
      expected.average.apply();
      const test::TempDir folder;
      const std::string file = (folder.path() / "average.pt").string();
      model.save(file);
      const SmallNet averaged;
      engine::load_state_dict(averaged, checkpoint::read_weights(file));
      expect_same(weights_of(averaged), weights_of(expected.net));
    });
  }
}

TEST(Amp, AScheduleOfACallbackStaysWhereAnUpdateIsSkipped) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    optim::Adam optimizer(net, {.lr = 0.01});
    Model model(net);
    model.prepare(optimizer, loss::CrossEntropy(), {}, {.amp = AmpOptions{.scaler = kHigh}});
    const Watch watch;
    model.fit(loud_blobs(64),
              {.batch_size = 4,
               .epochs = 3,
               .callbacks = {LRScheduler(
                                 optim::per_step(optim::ExponentialLR(optimizer, {.gamma = 0.97}))),
                             watch},
               .log = {.verbose = 0, .freq = 1}});
    ByHand expected;
    expected.run(loud_blobs(64), 4, 1, 3);
    EXPECT_EQ(watch.seen->lrs, expected.lrs);
  });
}

TEST(Amp, AnInfinityOfOneRankSkipsTheUpdateOnAll) {
  for (const bool divides : {false, true}) {  // the ranks divide each step between them
    run_job(2,
            [](int rank) {
              const SmallNet net = small_net();
              const optim::Adam optimizer(net, {.lr = 0.01});
              Model model(net);
              model.prepare(optimizer,
                            loss::CrossEntropy(),
                            {},
                            {.amp = AmpOptions{.scaler = optim::GradScalerOptions{}}});
              const auto x = torch::ones({4, kFeatures}) * (rank + 1);
              const auto y = torch::tensor({0, 1, 2, 0});
              EXPECT_EQ(model.train_batch({x}, {y})["loss_scale"], 65536);
              const std::vector<at::Tensor> before = weights_of(net);
              const auto bad = rank == 1 ? x * std::numeric_limits<float>::infinity() : x;
              EXPECT_EQ(model.train_batch({bad}, {y})["loss_scale"], 32768);
              expect_same(weights_of(net), before);
              model.train_batch({x}, {y});
              EXPECT_EQ(adam_steps(optimizer), 2);
              EXPECT_FALSE(torch::equal(weights_of(net)[0], before[0])) << "and goes on";
            },
            {.share_parameters = divides});
  }
}

TEST(Amp, TwoRanksAccumulateScaledGradientsAndUnscaleThemOnce) {
  run_job(2, [](int rank) {
    std::vector<std::vector<at::Tensor>> ends;
    for (const double scale : {1.0, 1024.0}) {
      const SmallNet net = small_net();
      Model model(net);
      model.prepare(optim::SGD(net, {.lr = 0.1}),
                    loss::CrossEntropy(),
                    {},
                    {.amp = AmpOptions{.scaler = optim::GradScalerOptions{.init_scale = scale}}});
      model.fit(
          blobs(48),
          {.batch_size = 4, .epochs = 2, .accumulate_grad_batches = 2, .log = {.verbose = 0}});
      ends.push_back(weights_of(net));
    }
    expect_same(ends[0], ends[1]);  // powers of two leave no trace
    EXPECT_FALSE(torch::equal(ends[0][0], weights_of(small_net())[0])) << rank;
  });
}

TEST(Amp, TheScalerGoesOnToTheBitAfterAStop) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto train = [&](const SmallNet& net, const std::string& name, int64_t stop) {
      Model model(net);
      model.prepare(optim::Adam(net, {.lr = 0.01}),
                    loss::CrossEntropy(),
                    {},
                    {.amp = AmpOptions{.scaler = kHigh}});
      FitOptions options{.batch_size = 4,
                         .epochs = 3,
                         .resume = Resume::kAuto,
                         .checkpoint = {.dir = (folder.path() / name).string(),
                                        .on_signal = OnSignal::kSaveAndReturn},
                         .log = {.verbose = 0}};
      if (stop > 0) {
        options.callbacks.emplace_back(SignalAt(stop));
      }
      return model.fit(loud_blobs(64), options);
    };
    const SmallNet whole = small_net();
    const History straight = train(whole, "whole", 0);
    for (const int64_t stop : {1, 7, 8, 9, 10, 11, 30}) {
      const std::string name = "stop" + std::to_string(stop);
      ASSERT_EQ(train(small_net(), name, stop).ended, Ended::kPreempted);
      const SmallNet net = small_net();
      const History rest = train(net, name, 0);
      expect_same(weights_of(net), weights_of(whole));
      EXPECT_EQ(rest.epochs.back()["loss_scale"], straight.epochs.back()["loss_scale"]) << stop;
    }
    Model without{small_net()};
    without.prepare(optim::Adam(without.parameters()), loss::CrossEntropy());
    without.save((folder.path() / "without").string());
    Model with{small_net()};
    with.prepare(optim::Adam(with.parameters()),
                 loss::CrossEntropy(),
                 {},
                 {.amp = AmpOptions{.scaler = kHigh}});
    EXPECT_THAT(
        test::error_text<CheckpointError>([&] { with.load((folder.path() / "without").string()); }),
        HasSubstr("scaler"));
  });
}

}  // namespace
}  // namespace argosy::train
