// Mixed precision in the trainer: what computes in bfloat16, what the scaler skips, and that both
// go on after a stop.
#include <cmath>
#include <csignal>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/engine/autocast.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/clip.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/callbacks/gradient_monitor.h"
#include "argosy/train/callbacks/lr_scheduler.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

using testing::blobs;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::kFeatures;
using testing::run_job;
using testing::small_net;
using testing::SmallNet;

constexpr double kLoud = 1024;          // of the inputs, for large gradients
constexpr double kHighScale = 0x1p120;  // which overflow now and then with it
constexpr int64_t kInterval = 3;        // updates until it doubles
const optim::GradScalerOptions kHigh{.init_scale = kHighScale, .growth_interval = kInterval};

data::TensorDataset<2> loud_blobs(int64_t samples) {
  const auto quiet = blobs(samples);
  std::vector<at::Tensor> xs;
  std::vector<at::Tensor> ys;
  for (int64_t i = 0; i < samples; ++i) {
    auto [x, y] = quiet.get(i);
    xs.push_back(x * kLoud);
    ys.push_back(y);
  }
  return data::TensorDataset<2>(torch::stack(xs), torch::stack(ys));
}

std::vector<at::Tensor> weights_of(const SmallNet& net) {
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : engine::named_parameters(net)) {
    all.push_back(parameter.detach().clone());
  }
  return all;
}

void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(torch::equal(a[i], b[i])) << "tensor " << i;
  }
}

int64_t adam_steps(const optim::Optimizer& optimizer) {
  const optim::OptimizerState state = optimizer.state_dict();
  const engine::StateDict* first = state.find("first.weight");
  return first == nullptr ? 0 : first->find("step")->item<int64_t>();
}

/// A holder's forward is not const.
torch::Tensor run_net(SmallNet net,
                      const at::Tensor& x) {  // NOLINT(performance-unnecessary-value-param)
  return net->forward(x);
}

torch::Tensor loss_in_bfloat16(const SmallNet& net, const at::Tensor& x, const at::Tensor& y) {
  torch::Tensor out;
  {
    const engine::Autocast autocast;
    out = run_net(net, x);
  }
  return torch::nn::functional::cross_entropy(out.to(torch::kFloat), y);
}

TEST(Amp, FitGivesTheBitsOfTheLoopByHandInBfloat16) {
  run_job(1, [](int) {
    const auto set = blobs(50);
    const SmallNet net = small_net();
    Model model(net);
    model.prepare(optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy(), {}, {.amp = AmpOptions{}});
    const History history = model.fit(set, {.batch_size = 8, .epochs = 2, .verbose = 0});
    EXPECT_EQ(history.epochs[0].find("loss_scale"), nullptr) << "bfloat16 has no scaler";

    const SmallNet by_hand = small_net();
    optim::SGD optimizer(by_hand, {.lr = 0.1});
    const SmallNet full = small_net();
    optim::SGD full_optimizer(full, {.lr = 0.1});
    data::DataLoader loader(
        set, fleet::distributed_batch_sampler(50, {.batch_size = 8, .shuffle = true}));
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto& [x, y] : loader) {
        loss_in_bfloat16(by_hand, x, y).backward();
        optimizer.step();
        optimizer.zero_grad();
        torch::nn::functional::cross_entropy(run_net(full, x), y).backward();
        full_optimizer.step();
        full_optimizer.zero_grad();
      }
    }
    expect_same(weights_of(net), weights_of(by_hand));
    EXPECT_FALSE(torch::equal(weights_of(net)[0], weights_of(full)[0])) << "it is another sum";
  });
}

TEST(Amp, EvaluateAndPredictComputeInItAndGiveF32) {
  run_job(1, [](int) {
    const auto set = blobs(12);
    const SmallNet net = small_net();
    Model model(net);
    model.prepare(loss::CrossEntropy(), {metrics::Accuracy()}, AmpOptions{});
    std::vector<at::Tensor> xs;
    std::vector<at::Tensor> ys;
    for (int64_t i = 0; i < 12; ++i) {
      auto [x, y] = set.get(i);
      xs.push_back(x);
      ys.push_back(y);
    }
    const at::Tensor x = torch::stack(xs);
    const at::Tensor y = torch::stack(ys);
    const torch::NoGradGuard no_grad;
    at::Tensor expected;
    {
      const engine::Autocast autocast;
      expected = run_net(net, x).to(torch::kFloat);
    }
    const std::vector<at::Tensor> outputs = model.predict(set, {.batch_size = 12, .verbose = 0});
    EXPECT_EQ(outputs[0].scalar_type(), torch::kFloat);
    EXPECT_TRUE(torch::equal(outputs[0], expected));
    EXPECT_TRUE(torch::equal(model.predict_batch({x})[0], expected));
    EXPECT_FALSE(torch::equal(run_net(net, x), expected)) << "it is another sum";
    const auto loss = torch::nn::functional::cross_entropy(expected, y).item<double>();
    EXPECT_EQ(model.evaluate(set, {.batch_size = 12, .verbose = 0})["loss"], loss);
    EXPECT_EQ(model.eval_batch({x}, {y})["loss"], loss);
    model.prepare(loss::CrossEntropy());
    EXPECT_TRUE(torch::equal(model.predict_batch({x})[0], run_net(net, x)))
        << "prepared without, it computes in full again";
  });
}

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
                                         .log_freq = 1,
                                         .verbose = 0,
                                         .callbacks = {watch, GradientMonitor()},
                                         .accumulate_grad_batches = together});
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
               .log_freq = 1,
               .verbose = 0,
               .callbacks = {
                   LRScheduler(optim::per_step(optim::ExponentialLR(optimizer, {.gamma = 0.97}))),
                   watch}});
    ByHand expected;
    expected.run(loud_blobs(64), 4, 1, 3);
    EXPECT_EQ(watch.seen->lrs, expected.lrs);
  });
}

TEST(Amp, AnInfinityOfOneRankSkipsTheUpdateOnAll) {
  for (const bool divides : {false, true}) {  // the ranks divide each step between them
    const test::TempDir folder;
    test::run_ranks(2,
                    [&](int rank) {
                      torch::set_num_threads(1);
                      fleet::init({.share_parameters = divides},
                                  {.init_method = "file://" + folder.path().string() + "/store",
                                   .timeout = std::chrono::seconds(30),
                                   .rank = rank,
                                   .world_size = 2});
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
                      fleet::stop_worker();
                    },
                    {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
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
      model.fit(blobs(48),
                {.batch_size = 4, .epochs = 2, .verbose = 0, .accumulate_grad_batches = 2});
      ends.push_back(weights_of(net));
    }
    expect_same(ends[0], ends[1]);  // powers of two leave no trace
    EXPECT_FALSE(torch::equal(ends[0][0], weights_of(small_net())[0])) << rank;
  });
}

struct StopAt : Callback {
  int64_t step;
  explicit StopAt(int64_t at) : step(at) {}
  void on_train_batch_begin(const Step& now) override {
    if (now.step + 1 == step) {
      ::raise(SIGUSR1);
    }
  }
};

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
                         .save_dir = (folder.path() / name).string(),
                         .verbose = 0,
                         .resume = Resume::kAuto,
                         .on_signal = OnSignal::kSaveAndReturn};
      if (stop > 0) {
        options.callbacks.emplace_back(StopAt(stop));
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

struct ConvNetImpl : torch::nn::Module {
  ConvNetImpl() {
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(16));
    second = register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 16, 3)));
    out = register_module("out", torch::nn::Linear(16, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = torch::relu(norm->forward(first->forward(x)));
    return out->forward(torch::relu(second->forward(h)).mean({2, 3}));
  }
  torch::nn::Conv2d first{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Conv2d second{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(ConvNet);

TEST(Amp, TheTrialOfAMemoryFormatLeavesNoWeightsWithoutAGraph) {
  run_job(2, [](int) {
    torch::manual_seed(5);
    const ConvNet net;
    Model model(net);
    const optim::SGD optimizer(net, {.lr = 0.1});
    model.prepare(optimizer, loss::CrossEntropy(), {}, {.amp = AmpOptions{}});
    const auto images = torch::randn({4, 3, 12, 12});
    const at::Tensor before = net->first->weight.detach().clone();
    const at::Tensor then = net->second->weight.detach().clone();
    model.train_batch({images}, {torch::tensor({0, 1, 2, 0})});  // with the trial in its forward
    EXPECT_FALSE(torch::equal(net->first->weight, before));
    EXPECT_FALSE(torch::equal(net->second->weight, then));
  });
}

TEST(Amp, WhatCannotBeIsSaidAtPrepare) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    Model model(net);
    EXPECT_THAT(test::error_text<UsageError>([&] {
                  model.prepare(optim::SGD(net, {.lr = 0.1}),
                                loss::CrossEntropy(),
                                {},
                                {.amp = AmpOptions{.dtype = torch::kHalf}});
                }),
                HasSubstr("[train.prepare] amp.dtype Half: the device cpu cannot compute in it"));
  });
  const test::TempDir folder;
  test::run_ranks(2,
                  [&](int rank) {
                    fleet::init({.overlap_update = true},
                                {.init_method = "file://" + folder.path().string() + "/store",
                                 .timeout = std::chrono::seconds(30),
                                 .rank = rank,
                                 .world_size = 2});
                    const SmallNet net = small_net();
                    Model model(net);
                    EXPECT_THAT(test::error_text<UsageError>([&] {
                                  model.prepare(optim::SGD(net, {.lr = 0.1}),
                                                loss::CrossEntropy(),
                                                {},
                                                {.amp = AmpOptions{.scaler = kHigh}});
                                }),
                                HasSubstr("overlap_update exclude each other"));
                    fleet::stop_worker();
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
}

TEST(Amp, GradientsThatAreNeverFiniteEndInAnError) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    Model model(net);
    model.prepare(optim::SGD(net, {.lr = 0.1}),
                  loss::CrossEntropy(),
                  {},
                  {.amp = AmpOptions{.scaler = optim::GradScalerOptions{.init_scale = 0x1p-120}}});
    const auto nan = torch::full({4, kFeatures}, std::nan(""));
    const auto labels = torch::tensor({0, 1, 2, 0});
    const std::string text = test::error_text<DataError>([&] {
      for (int i = 0; i < 20; ++i) {
        model.train_batch({nan}, {labels});
      }
    });
    EXPECT_THAT(text, HasSubstr("the gradients of 7 updates in a row were not finite"));
    EXPECT_TRUE(torch::isfinite(net->first->weight).all().item<bool>());
  });
}

TEST(Amp, AnUpdateThatAnExceptionEndedIsForgotten) {
  run_job(1, [](int) {
    struct Throws : Callback {
      void on_before_update(const Step& /*step*/) override { throw std::runtime_error("mine"); }
    };
    const SmallNet net = small_net();
    Model model(net);
    model.prepare(optim::SGD(net, {.lr = 0.1}),
                  loss::CrossEntropy(),
                  {},
                  {.amp = AmpOptions{.scaler = kHigh}});
    EXPECT_THROW(model.fit(blobs(8), {.batch_size = 4, .verbose = 0, .callbacks = {Throws()}}),
                 std::runtime_error);
    EXPECT_EQ(model.fit(blobs(8), {.batch_size = 4, .verbose = 0}).steps, 2);
  });
}

TEST(Amp, AModelCanBeSavedAmidAnUpdateAndAfterOneThatAnExceptionEnded) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    struct Saves : Callback {
      std::string path;
      explicit Saves(std::string to) : path(std::move(to)) {}
      void on_before_update(const Step& step) override {
        step.model.save(path);
        throw std::runtime_error("mine");
      }
    };
    const std::string amid = (folder.path() / "amid").string();
    const std::string after = (folder.path() / "after").string();
    const SmallNet net = small_net();
    const auto prepared = [](const SmallNet& of, double scale) {
      Model model(of);
      model.prepare(optim::SGD(of, {.lr = 0.1}),
                    loss::CrossEntropy(),
                    {},
                    {.amp = AmpOptions{.scaler = optim::GradScalerOptions{.init_scale = scale}}});
      return model;
    };
    Model model = prepared(net, 1024);
    EXPECT_THROW(model.fit(blobs(8), {.batch_size = 4, .verbose = 0, .callbacks = {Saves(amid)}}),
                 std::runtime_error);
    model.save(after);
    for (const std::string& path : {amid, after}) {
      const SmallNet again;
      Model loaded = prepared(again, 8);
      loaded.load(path);
      expect_same(weights_of(again), weights_of(small_net()));
      EXPECT_EQ(loaded.train_batch({torch::ones({4, kFeatures})},
                                   {torch::tensor({0, 1, 2, 0})})["loss_scale"],
                1024);
    }
  });
}

}  // namespace
}  // namespace argosy::train
