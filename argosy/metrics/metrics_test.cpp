#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/metrics/mean_loss.h"
#include "argosy/metrics/perplexity.h"

#include "tests/support/error_text.h"

namespace argosy::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

at::Tensor long_tensor(const std::vector<int64_t>& values) {
  return torch::tensor(values, torch::kLong);
}

TEST(MeanLoss, WeighsByBatchSize) {
  MeanLoss loss;
  loss.update(2.0, 3);
  loss.update(torch::tensor(5.0F), 1);
  EXPECT_EQ(loss.compute(), 11.0 / 4);
  EXPECT_EQ(loss.count(), 4);
  loss.reset();
  loss.update(7.0, 2);
  EXPECT_EQ(loss.compute(), 7.0);
}

TEST(MeanLoss, OfNothingIsNan) {
  MeanLoss loss;
  EXPECT_TRUE(std::isnan(loss.compute()));
  loss.update(kNotANumber, 0);  // what cross_entropy gives for an empty batch
  EXPECT_TRUE(std::isnan(loss.compute()));
  loss.update(1.5, 2);
  EXPECT_EQ(loss.compute(), 1.5);
}

TEST(MeanLoss, NanStaysVisible) {
  MeanLoss loss;
  loss.update(1.0, 10);
  loss.update(torch::tensor(kNotANumber), 10);
  EXPECT_TRUE(std::isnan(loss.compute()));
}

TEST(MeanLoss, TakesAnyFloatingType) {
  for (const auto type : {torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    MeanLoss loss;
    loss.update(torch::full({1}, 0.5, type), 4);
    EXPECT_EQ(loss.compute(), 0.5) << type;
  }
}

TEST(MeanLoss, RefusesWhatIsNotALoss) {
  MeanLoss loss;
  EXPECT_THAT(test::error_text<UsageError>([&] { loss.update(torch::zeros({3})); }),
              HasSubstr("[metrics.MeanLoss] the loss must be one number, got 3 elements"));
  EXPECT_THAT(test::error_text<UsageError>([&] { loss.update(at::Tensor()); }),
              HasSubstr("got 0 elements"));
  EXPECT_THAT(test::error_text<UsageError>([&] { loss.update(1.0, -2); }), HasSubstr("got -2"));
  EXPECT_EQ(loss.count(), 0);
}

TEST(Accuracy, CountsTopK) {
  Accuracy accuracy({.topk = {1, 2, 3}});
  accuracy.update(torch::tensor({{0.1, 0.9, 0.5}, {0.9, 0.1, 0.5}, {0.2, 0.5, 0.3}}),
                  long_tensor({1, 2, 0}));
  EXPECT_THAT(accuracy.values(), ElementsAre(1.0 / 3, 2.0 / 3, 1.0));
  EXPECT_EQ(accuracy.compute(), 1.0 / 3);
  EXPECT_EQ(accuracy.count(), 3);
  EXPECT_THAT(accuracy.names(), ElementsAre("acc_top1", "acc_top2", "acc_top3"));
  EXPECT_THAT(Accuracy().names(), ElementsAre("acc"));
  accuracy.reset();
  EXPECT_TRUE(std::isnan(accuracy.compute()));
}

TEST(Accuracy, AgreesWithTopkWithoutTies) {
  torch::manual_seed(3);
  // A permutation in each row: no two logits are equal, so torch::topk has no freedom.
  const at::Tensor logits =
      torch::rand({400, 20}).argsort(1, /*descending=*/false).to(torch::kFloat);
  const at::Tensor labels = torch::randint(0, 20, {400}, torch::kLong);
  for (const int64_t k : {1, 2, 5, 20}) {
    Accuracy accuracy({.topk = {k}});
    accuracy.update(logits, labels);
    const at::Tensor found = std::get<1>(logits.topk(k, 1)).eq(labels.unsqueeze(1)).any(1);
    EXPECT_EQ(accuracy.compute(), found.sum().item<int64_t>() / 400.0) << k;
  }
}

TEST(Accuracy, TiesGoToTheLowerClassAsInArgmax) {
  torch::manual_seed(4);
  const at::Tensor logits = torch::randint(0, 3, {300, 6}, torch::kFloat);  // full of ties
  const at::Tensor labels = torch::randint(0, 6, {300}, torch::kLong);
  Accuracy accuracy;
  accuracy.update(logits, labels);
  EXPECT_EQ(accuracy.compute(), logits.argmax(1).eq(labels).sum().item<int64_t>() / 300.0);

  Accuracy ranks({.topk = {1, 2, 3}});
  ranks.update(torch::zeros({3, 3}), long_tensor({0, 1, 2}));  // all equal: class c has rank c
  EXPECT_THAT(ranks.values(), ElementsAre(1.0 / 3, 2.0 / 3, 1.0));
}

TEST(Accuracy, NanRanksHighestAsInTorch) {
  const at::Tensor logits = torch::tensor({{1.0, kNotANumber, 5.0},
                                           {kNotANumber, 2.0, kNotANumber},
                                           {kNotANumber, kNotANumber, kNotANumber}});
  const at::Tensor labels = long_tensor({2, 2, 0});
  Accuracy accuracy({.topk = {1, 2, 3}});
  accuracy.update(logits, labels);
  // Row 0: label 2 is below the NaN. Row 1: second of two NaN. Row 2: first of three.
  EXPECT_THAT(accuracy.values(), ElementsAre(1.0 / 3, 1.0, 1.0));
  Accuracy first;
  first.update(logits, logits.argmax(1));
  EXPECT_EQ(first.compute(), 1.0);
}

TEST(Accuracy, TakesPaddlesLabelColumnAnyTypeAndLayout) {
  const at::Tensor logits = torch::tensor({{0.0, 1.0}, {1.0, 0.0}});
  for (const auto type : {torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    Accuracy accuracy;
    accuracy.update(logits.to(type), long_tensor({1, 0}).unsqueeze(1));
    accuracy.update(logits.to(type).t(), torch::tensor({1, 0}, torch::kInt));
    EXPECT_EQ(accuracy.compute(), 1.0) << type;
  }
}

TEST(Accuracy, AnEmptyBatchCountsNothing) {
  Accuracy accuracy;
  accuracy.update(torch::zeros({0, 10}), torch::zeros({0}, torch::kLong));
  EXPECT_TRUE(std::isnan(accuracy.compute()));
  EXPECT_EQ(accuracy.count(), 0);
}

TEST(Accuracy, CountsEachPlaceOfASequenceButTheIgnoredOnes) {
  torch::manual_seed(5);
  const at::Tensor logits = torch::rand({3, 7, 4});  // [N, C, T], as CrossEntropy takes them
  at::Tensor labels = torch::randint(0, 7, {3, 4}, torch::kLong);
  const at::Tensor right = logits.argmax(1).eq(labels);
  Accuracy all;
  all.update(logits, labels);
  all.update(logits, labels.unsqueeze(1));  // Paddle's
  EXPECT_EQ(all.compute(), right.sum().item<int64_t>() / 12.0);
  EXPECT_EQ(all.count(), 24);

  labels[1].fill_(-100);
  labels[2][3] = -100;
  const at::Tensor counted = labels.ne(-100);
  Accuracy some;
  some.update(logits, labels);
  EXPECT_EQ(some.count(), 7);
  EXPECT_EQ(some.compute(), right.logical_and(counted).sum().item<int64_t>() / 7.0);
  Accuracy padded({.ignore_index = 0});
  padded.update(logits, labels.clamp_min(0));
  EXPECT_EQ(padded.count(), labels.gt(0).sum().item<int64_t>());
  EXPECT_EQ(Accuracy().count(), 0);

  Accuracy wrong;
  const auto message = [&](const at::Tensor& l, const at::Tensor& t) {
    return test::error_text<UsageError>([&] { wrong.update(l, t); });
  };
  EXPECT_THAT(message(logits.transpose(1, 2), torch::zeros({3, 4}, torch::kLong)),
              HasSubstr("Classes belong into dim 1: call logits.movedim(-1, 1)"));
  EXPECT_THAT(message(logits, torch::full({3, 4}, 7, torch::kLong)),
              HasSubstr("label 7 in place [0, 0] is outside the 7 classes"));
  EXPECT_EQ(wrong.count(), 0);
}

TEST(Accuracy, RefusesWhatDoesNotFitAndCountsNothingThen) {
  Accuracy accuracy({.topk = {1, 3}});
  const at::Tensor good = torch::zeros({2, 4});
  auto message = [&](const at::Tensor& logits, const at::Tensor& labels) {
    return test::error_text<UsageError>([&] { accuracy.update(logits, labels); });
  };
  EXPECT_THAT(message(good, long_tensor({0, 4})),
              HasSubstr("[metrics.Accuracy] label 4 in row 1 is outside the 4 classes"));
  EXPECT_THAT(message(good, long_tensor({-1, 0})), HasSubstr("label -1 in row 0"));
  EXPECT_THAT(message(good, long_tensor({0, 1, 2})), HasSubstr("got [2, 4] and [3]"));
  EXPECT_THAT(message(torch::zeros({2}), long_tensor({0, 1})), HasSubstr("got [2] and [2]"));
  EXPECT_THAT(message(torch::zeros({2, 2}), long_tensor({0, 1})),
              HasSubstr("top-3 needs at least 3 classes, the logits have 2"));
  EXPECT_THAT(message(good.to(torch::kLong), long_tensor({0, 1})), HasSubstr("floating point"));
  EXPECT_THAT(message(good, torch::zeros({2})), HasSubstr("labels must be integers"));
  EXPECT_EQ(accuracy.count(), 0);
  EXPECT_THAT(test::error_text<UsageError>([] { Accuracy({.topk = {}}); }),
              HasSubstr("topk must name"));
  EXPECT_THAT(test::error_text<UsageError>([] { Accuracy({.topk = {0}}); }), HasSubstr("got 0"));
}

TEST(Perplexity, IsTheNumberOfEvenGuesses) {
  Perplexity perplexity;
  perplexity.update(torch::zeros({2, 3, 7}), torch::ones({2, 3}, torch::kLong));
  EXPECT_NEAR(perplexity.compute(), 7, 1e-12);
  EXPECT_EQ(perplexity.count(), 6);
  perplexity.reset();
  EXPECT_TRUE(std::isnan(perplexity.compute()));
}

TEST(Perplexity, IsThatOfTorcheval) {
  // torcheval 0.0.7: Perplexity().update(torch.tensor([[[0.3659, 0.7025, 0.3104]],
  // [[0.0097, 0.6577, 0.1947]]]), torch.tensor([[2], [1]])).compute() = 2.7593
  const at::Tensor logits =
      torch::tensor({0.3659, 0.7025, 0.3104, 0.0097, 0.6577, 0.1947}).view({2, 1, 3});
  Perplexity perplexity;
  perplexity.update(logits, long_tensor({2, 1}).view({2, 1}));
  EXPECT_NEAR(perplexity.compute(), 2.7593, 1e-4);
  Perplexity one({.ignore_index = 1});
  one.update(logits, long_tensor({2, 1}).view({2, 1}));
  EXPECT_EQ(one.count(), 1);
  EXPECT_NEAR(one.compute(), std::exp(1.2633), 1e-3);
}

TEST(Perplexity, TakesTheLossOfANetworkThatComputesIt) {
  torch::manual_seed(3);
  const at::Tensor logits = torch::randn({5, 400, 1000});  // more than is taken at once
  at::Tensor targets = torch::randint(0, 1000, {5, 400}, torch::kLong);
  targets.narrow(1, 0, 37).fill_(-100);
  const at::Tensor loss =
      torch::nn::functional::cross_entropy(logits.flatten(0, 1), targets.flatten());
  Perplexity of_logits;
  of_logits.update(logits, targets);
  Perplexity of_loss;
  of_loss.update(loss, targets);
  EXPECT_EQ(of_loss.count(), 5 * 363);
  EXPECT_EQ(of_logits.count(), 5 * 363);
  EXPECT_NEAR(of_loss.compute() / of_logits.compute(), 1, 1e-5);
  // Batches count by their tokens, not alike.
  Perplexity both;
  both.update(torch::tensor(1.0), torch::zeros({1, 3}, torch::kLong));
  both.update(torch::tensor(2.0), torch::zeros({1, 1}, torch::kLong));
  both.update(torch::tensor(kNotANumber), torch::full({1, 4}, -100, torch::kLong));
  EXPECT_DOUBLE_EQ(both.compute(), std::exp(5.0 / 4));
}

TEST(Perplexity, RefusesOtherShapesAndTokens) {
  Perplexity perplexity;
  const at::Tensor targets = torch::zeros({2, 3}, torch::kLong);
  const auto refused = [&](const at::Tensor& output, const at::Tensor& labels) {
    return test::error_text<UsageError>([&] { perplexity.update(output, labels); });
  };
  EXPECT_THAT(refused(torch::zeros({2, 7, 3}), targets),
              HasSubstr("expected logits [..., V] for targets [...] of Long, or their mean loss as "
                        "one number, got [2, 7, 3] Float and [2, 3] Long"));
  EXPECT_THAT(refused(torch::zeros({2, 3, 7}), targets.to(torch::kInt)), HasSubstr("[2, 3] Int"));
  EXPECT_THAT(refused(torch::zeros({2, 3, 7}), targets + 7),
              HasSubstr("target 7 of row 0 is outside the vocabulary of 7 tokens (0 to 6)"));
  EXPECT_TRUE(std::isnan(perplexity.compute())) << "what was refused must not count";
}

}  // namespace
}  // namespace argosy::metrics
