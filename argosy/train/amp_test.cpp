// Mixed precision in the trainer: what computes in bfloat16.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/metrics/accuracy.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/amp_test_support.h"
#include "argosy/train/model.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

using testing::adam_steps;
using testing::blobs;
using testing::expect_same;
using ::testing::HasSubstr;
using testing::kFeatures;
using testing::kHigh;
using testing::loss_in_bfloat16;
using testing::run_job;
using testing::run_net;
using testing::small_net;
using testing::SmallNet;
using testing::weights_of;

TEST(Amp, FitGivesTheBitsOfTheLoopByHandInBfloat16) {
  run_job(1, [](int) {
    const auto set = blobs(50);
    const SmallNet net = small_net();
    Model model(net);
    model.prepare(optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy(), {}, {.amp = AmpOptions{}});
    const History history = model.fit(set, {.batch_size = 8, .epochs = 2, .log = {.verbose = 0}});
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

/// The weights after a short training on two ranks, and the last loss of its evaluations.
std::pair<std::vector<at::Tensor>, double> trained(const std::optional<AmpOptions>& amp) {
  const SmallNet net = small_net();
  Model model(net);
  model.prepare(optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy(), {}, {.amp = amp});
  const History history =
      model.fit(blobs(48), blobs(16), {.batch_size = 8, .epochs = 2, .log = {.verbose = 0}});
  return {weights_of(net), history.epochs.back()["eval_loss"]};
}

TEST(Amp, TheStrategysDoesWhatThatOfPrepareDoes) {
  const test::TempDir folder;
  const std::string kept = (folder.path() / "prepare.pt").string();
  run_job(2, [&](int rank) {
    auto [weights, loss] = trained(AmpOptions{});
    weights.push_back(torch::tensor(loss, at::kDouble));
    if (rank == 0) {
      torch::save(weights, kept);
    }
  });
  run_job(2,
          [&](int) {
            std::vector<at::Tensor> expected;
            torch::load(expected, kept);
            auto [weights, loss] = trained({});
            weights.push_back(torch::tensor(loss, at::kDouble));
            expect_same(weights, expected);
          },
          {.amp = true});
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
  run_job(2,
          [](int) {
            const SmallNet net = small_net();
            Model model(net);
            EXPECT_THAT(test::error_text<UsageError>([&] {
                          model.prepare(optim::SGD(net, {.lr = 0.1}),
                                        loss::CrossEntropy(),
                                        {},
                                        {.amp = AmpOptions{.scaler = kHigh}});
                        }),
                        HasSubstr("overlap_update exclude each other"));
          },
          {.overlap_update = true});
  run_job(1,
          [](int) {
            Model model(small_net());
            EXPECT_THAT(test::error_text<UsageError>(
                            [&] { model.prepare(loss::CrossEntropy(), {}, AmpOptions{}); }),
                        HasSubstr("[train.prepare] the strategy's amp is on already"));
          },
          {.amp = true});
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
    EXPECT_THROW(
        model.fit(blobs(8), {.batch_size = 4, .callbacks = {Throws()}, .log = {.verbose = 0}}),
        std::runtime_error);
    EXPECT_EQ(model.fit(blobs(8), {.batch_size = 4, .log = {.verbose = 0}}).steps, 2);
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
    EXPECT_THROW(
        model.fit(blobs(8), {.batch_size = 4, .callbacks = {Saves(amid)}, .log = {.verbose = 0}}),
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
