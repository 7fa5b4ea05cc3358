#include "argosy/train/callbacks/layer_inspector.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/optim/sgd.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"
#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::blobs;
using ::testing::HasSubstr;
using testing::printed;
using testing::run_job;
using testing::small_net;
using testing::SmallNet;

void fit(const SmallNet& net, LayerInspectorOptions options, int64_t samples = 20) {
  Model model(net);
  model.prepare(optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy());
  model.fit(blobs(samples),
            {.batch_size = 4,
             .callbacks = {LayerInspector(std::move(options))},
             .data = {.shuffle = false},
             .log = {.verbose = 0}});
}

TEST(TensorFigures, AreThoseOfTheFiniteValues) {
  const double inf = std::numeric_limits<double>::infinity();
  const TensorFigures f =
      figures_of(torch::tensor({1.0, 0.0, 3.0, static_cast<double>(NAN), -inf, 0.0}).view({2, 3}));
  EXPECT_EQ(f.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_DOUBLE_EQ(f.mean, 1);
  EXPECT_DOUBLE_EQ(f.std, std::sqrt(1.5));  // of 1, 0, 3, 0
  EXPECT_DOUBLE_EQ(f.min, 0);
  EXPECT_DOUBLE_EQ(f.max, 3);
  EXPECT_EQ(f.zeros, 2);
  EXPECT_EQ(f.nans, 1);
  EXPECT_EQ(f.infinities, 1);
  EXPECT_EQ(figures_of(torch::arange(5)).max, 4);
  EXPECT_TRUE(std::isnan(figures_of(torch::empty({0})).mean));
}

TEST(LayerInspector, ShowsWhatEachLayerIsGivenAndGivesEveryNSteps) {
  const test::TempDir folder;
  const std::string path = folder.path().string() + "/layers.jsonl";
  run_job(2, [&](int rank) {
    SmallNet net = small_net();
    std::vector<at::Tensor> rows;
    for (int64_t i = 0; i < 4; ++i) {  // Paddle's order gives rank 0 the first whole batch
      rows.push_back(std::get<0>(blobs(40).get(i)));
    }
    const at::Tensor first_batch = torch::stack(rows);
    const at::Tensor hidden = net->first->forward(first_batch).detach().clone();
    const std::string text =
        printed([&](std::FILE* file) { fit(net, {.freq = 3, .out = file, .path = path}, 40); });
    if (rank != 0) {
      EXPECT_EQ(text, "");
      return;
    }
    EXPECT_THAT(text,
                AllOf(HasSubstr("Layers before update 1 (epoch 1, batch 1):\n"),
                      HasSubstr("Layers before update 4 (epoch 1, batch 4):\n"),
                      ::testing::Not(HasSubstr("before update 2")),
                      ::testing::ContainsRegex("second +Linear +input +\\[4, 8\\]")));
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    const json layers = json::parse(line)["layers"];
    ASSERT_EQ(layers.size(), 4U);
    EXPECT_EQ(layers[0]["what"], "input");
    EXPECT_NEAR(layers[0]["mean"].get<double>(), first_batch.mean().item<double>(), 1e-6);
    EXPECT_EQ(layers[1]["layer"], "first");
    EXPECT_NEAR(layers[1]["mean"].get<double>(), hidden.mean().item<double>(), 1e-6);
    EXPECT_NEAR(layers[1]["std"].get<double>(), hidden.std(false).item<double>(), 1e-6);
    EXPECT_NEAR(layers[1]["min"].get<double>(), hidden.min().item<double>(), 1e-6);
    EXPECT_NEAR(layers[1]["max"].get<double>(), hidden.max().item<double>(), 1e-6);
    // The second layer's input comes out of a relu.
    EXPECT_EQ(layers[2]["zeros"].get<int64_t>(), (hidden <= 0).sum().item<int64_t>());
    EXPECT_GT(layers[2]["zeros"].get<int64_t>(), 0);
  });
}

TEST(LayerInspector, ChangesNothingOfTheTraining) {
  run_job(1, [](int) {
    const SmallNet watched = small_net();
    fit(watched, {.freq = 1, .print = false});
    const SmallNet alone = small_net();
    Model model(alone);
    model.prepare(optim::SGD(alone, {.lr = 0.1}), loss::CrossEntropy());
    model.fit(blobs(20), {.batch_size = 4, .data = {.shuffle = false}, .log = {.verbose = 0}});
    EXPECT_TRUE(torch::equal(watched->second->weight, alone->second->weight));
    EXPECT_TRUE(watched->is_training());
  });
}

/// Divides by zero between its layers.
struct BrokenImpl : torch::nn::Module {
  BrokenImpl() {
    first = register_module("first", torch::nn::Linear(testing::kFeatures, 8));
    second = register_module("second", torch::nn::Linear(8, testing::kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor hidden = torch::relu(first->forward(x));
    return second->forward(hidden / (hidden - hidden));
  }
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
};
TORCH_MODULE(Broken);

TEST(LayerInspector, NamesTheFirstLayerThatIsNotFinite) {
  run_job(1, [](int) {
    const Broken net;
    Model model(net);
    model.prepare(optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy());
    const auto with = [](OnNonFinite what) {
      return FitOptions{.batch_size = 4,
                        .callbacks = {LayerInspector({.print = false, .on_non_finite = what})},
                        .log = {.verbose = 0}};
    };
    EXPECT_THAT(
        test::error_text<DataError>([&] { model.fit(blobs(8), with(OnNonFinite::kRaise)); }),
        AllOf(HasSubstr("[train.LayerInspector] the input of \"second\" (Linear) is the first that "
                        "is not finite, before update 1 (epoch 1, batch 1)"),
              HasSubstr("of 32 elements")));
    const History stopped = model.fit(blobs(8), with(OnNonFinite::kStop));
    EXPECT_EQ(stopped.ended, Ended::kStopped);
    EXPECT_THAT(stopped.reason, HasSubstr("\"second\""));
    EXPECT_EQ(stopped.steps, 1);
    EXPECT_EQ(model.fit(blobs(8), with(OnNonFinite::kReport)).ended, Ended::kFinished);
  });
}

}  // namespace
}  // namespace argosy::train
