#include "argosy/recommend/click_model.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/formats/click_truth.h"
#include "argosy/optim/adam.h"
#include "argosy/ps/training.h"
#include "argosy/recommend/click_feed.h"
#include "argosy/recommend/click_scores.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::recommend {
namespace {

using ::testing::HasSubstr;

std::string drawn(const std::filesystem::path& path, int lines, uint64_t seed) {
  formats::ClickTruth truth(seed);
  formats::ClickBatch batch;
  std::string text;
  for (int line = 0; line < lines; ++line) {
    truth.draw(batch);
    append_criteo_line(batch, batch.size() - 1, text);
  }
  std::ofstream(path) << text;
  return path.string();
}

struct ClickModels : ::testing::Test {
  test::TempDir folder{};
  std::string log = drawn(folder.path() / "log.tsv", 12000, 1);
  std::string other = drawn(folder.path() / "test.tsv", 2000, 2);

  [[nodiscard]] ps::TrainingOptions options(const std::string& checkpoints) const {
    return {.roles = ps::Roles::alone(),
            .checkpoints = checkpoints.empty() ? "" : (folder.path() / checkpoints).string()};
  }
  static double learn(ClickModel& model,
                      const optim::Optimizer& optimizer,
                      ps::ServedTraining& training,
                      const std::string& log,
                      int64_t until) {
    ClickFeed feed({.path = log, .batch_size = 100}, training.steps(), 100);
    double loss_of_last = 0;
    for (auto item = feed.next(); training.steps() < until; item = feed.next()) {
      if (item->ends_epoch()) {
        continue;
      }
      for (const auto& [name, parameter] : optimizer.parameters()) {
        parameter.mutable_grad() = at::Tensor();
      }
      const at::Tensor loss =
          torch::binary_cross_entropy_with_logits(model(item->inputs.ids), item->inputs.clicked);
      loss.backward();
      training.step();
      loss_of_last = loss.item<double>();
    }
    return loss_of_last;
  }
};

TEST_F(ClickModels, LearnInOneProcessWhatCanBeLearned) {
  for (const ClickNetwork network : {ClickNetwork::kDeepFm, ClickNetwork::kWideDeep}) {
    torch::manual_seed(3);
    ClickModel model({.network = network, .dim = 4, .hidden = {8}});
    optim::Adam optimizer(*model, {.lr = 1e-3});
    ps::ServedTraining training(*model, optimizer, options(""));
    EXPECT_NEAR(scores_on(*model, {.path = other}).auc(), 0.5, 0.1);
    learn(model, optimizer, training, log, 120);
    const ClickScores scores = scores_on(*model, {.path = other, .batch_size = 333});
    EXPECT_EQ(scores.lines(), 2000);
    EXPECT_GT(scores.auc(), 0.62);
    EXPECT_LT(scores.log_loss(), std::log(2));
    EXPECT_EQ(scores_on(*model, {.path = other, .limit = 500}).lines(), 500);
    training.stop();
  }
}

TEST_F(ClickModels, AreTheSameWhereverTheyResume) {
  const auto scores_after = [&](const std::string& folder_name, const std::vector<int64_t>& stops) {
    double loss = 0;
    for (const int64_t until : stops) {
      torch::manual_seed(3);
      ClickModel model({.dim = 4, .hidden = {8, 5}});
      optim::Adam optimizer(*model, {.lr = 1e-3});
      ps::ServedTraining training(*model, optimizer, options(folder_name));
      learn(model, optimizer, training, log, until);
      training.save();
      loss = scores_on(*model, {.path = other}).log_loss();
      training.stop();
    }
    return loss;
  };
  EXPECT_EQ(scores_after("whole", {130}), scores_after("parts", {50, 120, 130}));
}

TEST_F(ClickModels, LeaveNoServerBehindWhereTheWorkerFails) {
  ClickModel model({.dim = 2, .hidden = {}});
  optim::Adam optimizer(*model, {.lr = 1e-3});
  try {
    const ps::ServedTraining training(*model, optimizer, options(""));
    throw std::runtime_error("a worker's");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "a worker's");
  }
}

TEST(ClickModelOptions, AreChecked) {
  const auto text_of = [](const ClickModelOptions& options) {
    return test::error_text<UsageError>([&] { const ClickModel model(options); });
  };
  EXPECT_THAT(text_of({.dim = 0}), HasSubstr("dim: expected 1 or more, got 0"));
  EXPECT_THAT(text_of({.hidden = {4, 0}}),
              HasSubstr("hidden: expected widths from 1 on, got 4, 0"));
}

}  // namespace
}  // namespace argosy::recommend
