#include "argosy/loss/loss.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::loss {
namespace {

using testing::HasSubstr;

constexpr int64_t kN = 6, kC = 5;

/// The inputs of tests/golden/losses/generate.py, by the same formulas.
struct Inputs {
  explicit Inputs(at::ScalarType type) : real(torch::TensorOptions(type)) {
    const auto f64 = torch::TensorOptions(torch::kDouble);
    const at::Tensor i = torch::arange(kN, f64).unsqueeze(1);
    const at::Tensor c = torch::arange(kC, f64).unsqueeze(0);
    logits = torch::sin(1 + 5 * i + c) * 2;
    other = torch::cos(2 + 3 * i + 2 * c);
    labels = (3 * torch::arange(kN, torch::kLong) + 1).remainder(kC);
    ignored = labels.clone();
    ignored[2] = -100;
    ignored[4] = -100;
    probabilities = (other * 2).softmax(1);
    weight = 0.5 + torch::arange(kC, f64) * 0.75;
    inside = torch::sigmoid(logits);
    signs = 1 - 2 * torch::arange(kN, f64).remainder(2);
    spatial = logits.t().reshape({1, kC, 2, 3}).repeat({2, 1, 1, 1});
    places = labels.reshape({1, 2, 3}).repeat({2, 1, 1});
    places[1][0][1] = -100;
    for (at::Tensor* t : {&logits, &other, &probabilities, &weight, &inside, &signs, &spatial}) {
      *t = t->to(type);
    }
  }
  torch::TensorOptions real;
  at::Tensor logits, other, labels, ignored, probabilities, weight, inside, signs, spatial, places;
};

struct Case {
  at::Tensor output;
  std::function<at::Tensor(const at::Tensor&)> loss;
  double count = 0;  // 0: not compared
};

template <typename L>
Case two(L loss, const at::Tensor& output, const at::Tensor& target) {
  const double count = loss.count(output, target);
  return {output, [=](const at::Tensor& x) { return loss(x, target); }, count};
}

template <typename L>
Case three(L loss, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  return {a, [=](const at::Tensor& x) { return loss(x, b, c); }, loss.count(a, b, c)};
}

void add_classes(std::map<std::string, Case>& cases, const Inputs& in) {
  const at::Tensor& w = in.weight;
  for (const auto& [name, r] : {std::pair{"mean", Reduction::kMean},
                                {"sum", Reduction::kSum},
                                {"none", Reduction::kNone}}) {
    const std::string of = name;
    cases["ce." + of] = two(CrossEntropy({.reduction = r}), in.logits, in.labels);
    cases["ce.all." + of] = two(
        CrossEntropy({.weight = w, .label_smoothing = 0.1, .reduction = r}), in.logits, in.ignored);
    cases["ce.smooth.ignored." + of] =
        two(CrossEntropy({.label_smoothing = 0.3, .reduction = r}), in.logits, in.ignored);
    cases["ce.probabilities.all." + of] =
        two(CrossEntropy({.weight = w, .label_smoothing = 0.1, .reduction = r}),
            in.logits,
            in.probabilities);
  }
  cases["ce.weight"] = two(CrossEntropy({.weight = w}), in.logits, in.labels.unsqueeze(1));
  cases["ce.weight.ignored"] = two(CrossEntropy({.weight = w}), in.logits, in.ignored);
  cases["ce.smooth"] =
      two(CrossEntropy({.label_smoothing = 0.1}), in.logits, in.labels.to(torch::kInt));
  cases["ce.smooth.1"] = two(CrossEntropy({.label_smoothing = 1}), in.logits, in.labels);
  cases["ce.ignore_index.1"] = two(
      CrossEntropy({.weight = w, .label_smoothing = 0.2, .ignore_index = 1}), in.logits, in.labels);
  cases["ce.probabilities"] = two(CrossEntropy(), in.logits, in.probabilities);
  cases["ce.spatial"] = two(CrossEntropy({.weight = w}), in.spatial, in.places.unsqueeze(1));
  cases["ce.spatial.smooth"] =
      two(CrossEntropy({.weight = w, .label_smoothing = 0.1}), in.spatial, in.places);
  cases["nll"] = two(NLL({.weight = w}), in.logits, in.ignored);
}

void add_others(std::map<std::string, Case>& cases, const Inputs& in) {
  const at::Tensor& w = in.weight;
  const at::Tensor& p = in.probabilities;
  for (const auto& [name, r, kl] : {std::tuple{"mean", Reduction::kMean, KLReduction::kMean},
                                    {"sum", Reduction::kSum, KLReduction::kSum},
                                    {"none", Reduction::kNone, KLReduction::kNone}}) {
    const std::string of = name;
    cases["mse." + of] = two(MSE({.reduction = r}), in.logits, in.other);
    cases["bce_with_logits." + of] =
        two(BCEWithLogits({.pos_weight = w, .reduction = r}), in.logits, p);
    cases["kl_div." + of] = two(KLDiv({.reduction = kl}), in.logits, p);
  }
  cases["l1"] = two(L1(), in.logits, in.other);
  cases["smooth_l1"] = two(SmoothL1({.beta = 0.5}), in.logits, in.other);
  cases["huber"] = two(Huber({.delta = 0.5}), in.logits, in.other);
  cases["bce"] = two(BCE(), in.inside, p);
  cases["bce.weight"] = two(BCE({.weight = w}), in.inside, p);
  cases["bce_with_logits"] = two(BCEWithLogits(), in.logits, p);
  cases["bce_with_logits.weight"] =
      two(BCEWithLogits({.weight = w, .pos_weight = w.flip(0)}), in.logits, p);
  cases["kl_div.batchmean"] = two(KLDiv({.reduction = KLReduction::kBatchMean}), in.logits, p);
  cases["kl_div.log"] = two(KLDiv({.target = KLTarget::kLogProbabilities}), in.logits, p.log());
  cases["cosine_embedding"] =
      three(CosineEmbedding({.margin = 0.1}), in.logits, in.other, in.signs);
  cases["margin_ranking"] = three(
      MarginRanking({.margin = 0.2}), in.logits.select(1, 0), in.other.select(1, 0), in.signs);
  cases["triplet_margin"] = three(TripletMargin({.margin = 0.8}), in.logits, in.other, p);
  cases["triplet_margin.swap"] =
      three(TripletMargin({.margin = 3, .p = 1, .swap = TripletMarginOptions::Swap::kSwap}),
            in.logits,
            in.other,
            p);
}

std::map<std::string, Case> cases_of(at::ScalarType type) {
  const Inputs in(type);
  std::map<std::string, Case> cases;
  add_classes(cases, in);
  add_others(cases, in);
  return cases;
}

struct Golden {
  std::vector<double> value, gradient;
};

std::map<std::string, Golden> golden() {
  std::ifstream file(ARGOSY_GOLDEN_DIR "/losses/torch.txt");
  std::map<std::string, Golden> golden;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "#") {
      continue;
    }
    Golden& entry = golden[word];
    std::vector<double>* into = &entry.value;
    while (words >> word) {
      if (word == "|") {
        into = &entry.gradient;
      } else {
        into->push_back(std::stod(word));
      }
    }
  }
  return golden;
}

double distance(const at::Tensor& ours, const std::vector<double>& theirs) {
  const at::Tensor expected = torch::tensor(theirs, torch::kDouble);
  if (ours.numel() != expected.numel()) {
    return HUGE_VAL;
  }
  return (ours.detach().to(torch::kDouble).flatten() - expected).abs().max().item<double>();
}

TEST(Losses, ValuesAndGradientsArePyTorchs) {
  const std::map<std::string, Golden> expected = golden();
  for (const auto& [type, bound] : {std::pair{torch::kDouble, 1e-13}, {torch::kFloat, 1e-6}}) {
    const std::map<std::string, Case> cases = cases_of(type);
    EXPECT_EQ(cases.size(), expected.size());
    for (const auto& [name, c] : cases) {
      ASSERT_TRUE(expected.contains(name)) << name;
      const at::Tensor x = c.output.clone().requires_grad_();
      const at::Tensor value = c.loss(x);
      value.sum().backward();
      const Golden& golden = expected.at(name);
      const double size = std::max(1.0, torch::tensor(golden.value).abs().max().item<double>());
      EXPECT_LE(distance(value, golden.value), bound * size) << name;
      EXPECT_LE(distance(x.grad(), golden.gradient), bound) << name;
      EXPECT_EQ(value.dim() == 0, golden.value.size() == 1) << name;
    }
  }
}

TEST(Losses, CountIsWhatTheMeanDividesBy) {
  // sum / count must be the mean: that is how a trainer puts ranks together.
  const Inputs in(torch::kDouble);
  auto check = [](auto mean, auto sum, const auto&... tensors) {
    EXPECT_NEAR(sum(tensors...).template item<double>() / mean.count(tensors...),
                mean(tensors...).template item<double>(),
                1e-13)
        << mean.name();
    EXPECT_EQ(sum.count(tensors...), 1) << mean.name();
  };
  constexpr auto kSum = Reduction::kSum;
  const at::Tensor& w = in.weight;
  for (const at::Tensor& target : {in.labels, in.ignored, in.probabilities}) {
    for (const at::Tensor& weight : {at::Tensor(), w}) {
      for (const double smoothing : {0.0, 0.1}) {
        check(CrossEntropy({.weight = weight, .label_smoothing = smoothing}),
              CrossEntropy({.weight = weight, .label_smoothing = smoothing, .reduction = kSum}),
              in.logits,
              target);
      }
    }
  }
  check(CrossEntropy({.weight = w}),
        CrossEntropy({.weight = w, .reduction = kSum}),
        in.spatial,
        in.places);
  check(NLL({.weight = w}), NLL({.weight = w, .reduction = kSum}), in.logits, in.ignored);
  check(MSE(), MSE({.reduction = kSum}), in.logits, in.other);
  check(L1(), L1({.reduction = kSum}), in.logits, in.other);
  check(SmoothL1(), SmoothL1({.reduction = kSum}), in.logits, in.other);
  check(Huber(), Huber({.reduction = kSum}), in.logits, in.other);
  check(BCE({.weight = w}), BCE({.weight = w, .reduction = kSum}), in.inside, in.probabilities);
  check(BCEWithLogits(), BCEWithLogits({.reduction = kSum}), in.logits, in.probabilities);
  for (const auto r : {KLReduction::kMean, KLReduction::kBatchMean}) {
    check(KLDiv({.reduction = r}),
          KLDiv({.reduction = KLReduction::kSum}),
          in.logits,
          in.probabilities);
  }
  check(CosineEmbedding(), CosineEmbedding({.reduction = kSum}), in.logits, in.other, in.signs);
  check(MarginRanking(), MarginRanking({.reduction = kSum}), in.logits, in.other, in.probabilities);
  check(TripletMargin(), TripletMargin({.reduction = kSum}), in.logits, in.other, in.probabilities);
  EXPECT_EQ(CrossEntropy().count(in.logits, in.ignored), 4);
  EXPECT_DOUBLE_EQ(CrossEntropy({.weight = w}).count(in.logits, in.ignored),
                   w.index({in.ignored.masked_select(in.ignored.ge(0))}).sum().item<double>());
}

TEST(Losses, UnevenPartsGiveTheMeanOfTheWhole) {
  const Inputs in(torch::kDouble);
  const Loss loss = CrossEntropy({.weight = in.weight, .label_smoothing = 0.1});
  double sum = 0;
  double count = 0;
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{0, 1}, {1, 4}, {4, 6}}) {
    const at::Tensor x = in.logits.slice(0, from, to);
    const at::Tensor t = in.labels.slice(0, from, to);
    sum += loss(x, t).item<double>() * loss.count(x, t);
    count += loss.count(x, t);
  }
  EXPECT_NEAR(sum / count, loss(in.logits, in.labels).item<double>(), 1e-14);
}

TEST(Losses, ALabelOutOfRangeNamesItsSampleAndTheClasses) {
  const at::Tensor logits = torch::zeros({3, 10});
  const at::Tensor ten = torch::tensor({1, 10, 3});
  for (const double smoothing : {0.0, 0.1}) {
    const CrossEntropy loss({.weight = torch::ones({10}), .label_smoothing = smoothing});
    const std::string expected =
        "[loss.CrossEntropy] label 10 of sample 1 is outside the 10 classes of the output (0 to 9)";
    EXPECT_THAT(test::error_text<UsageError>([&] { return loss(logits, ten); }),
                HasSubstr(expected));
    EXPECT_THAT(test::error_text<UsageError>([&] { return loss.count(logits, ten); }),
                HasSubstr(expected));
  }
  EXPECT_THAT(test::error_text<UsageError>([&] {
                return NLL()(logits, torch::tensor({1, 2, -3}));
              }),
              HasSubstr("[loss.NLL] label -3 of sample 2"));
  EXPECT_THAT(test::error_text<UsageError>([&] {
                return CrossEntropy()(torch::zeros({2, 3, 2, 2}),
                                      torch::tensor({0, 0, 0, 0, 0, 7, 0, 0}).view({2, 2, 2}));
              }),
              HasSubstr("label 7 of sample 1 (element 1 of its 4) is outside the 3 classes"));
}

TEST(Losses, RefuseShapesAndTypes) {
  const at::Tensor logits = torch::zeros({3, 4});
  auto ce = [&](const at::Tensor& x, const at::Tensor& t) {
    return test::error_text<UsageError>([&] { return CrossEntropy()(x, t); });
  };
  EXPECT_THAT(ce(logits, torch::zeros({2}, torch::kLong)),
              HasSubstr("expected classes [3], one for each row of the output [3, 4], got [2]"));
  EXPECT_THAT(ce(torch::zeros({2, 5, 7}), torch::zeros({2, 5}, torch::kLong)),
              HasSubstr("classes belong into dim 1: call output.movedim(-1, 1)"));
  EXPECT_THAT(ce(logits, torch::zeros({3})), HasSubstr("got [3, 4] and [3]"));
  EXPECT_THAT(ce(logits, torch::zeros({3}, torch::kBool)),
              HasSubstr("expected classes as integers"));
  EXPECT_THAT(ce(torch::zeros({3}), torch::zeros({3}, torch::kLong)),
              HasSubstr("got [3] of Float"));
  EXPECT_THAT(ce(at::Tensor(), logits), HasSubstr("an undefined tensor"));
  EXPECT_THAT(ce(logits.to(torch::kLong), torch::zeros({3}, torch::kLong)), HasSubstr("of Long"));
  EXPECT_THAT(test::error_text<UsageError>([&] {
                return CrossEntropy({.weight = torch::ones({3})})(logits,
                                                                  torch::zeros({3}, torch::kLong));
              }),
              HasSubstr("weight has 3 classes, the output [3, 4] has 4"));
  EXPECT_THAT(test::error_text<UsageError>([] { return CrossEntropy({.label_smoothing = 1.5}); }),
              HasSubstr("label_smoothing must be in [0, 1], got 1.5"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                return CrossEntropy({.weight = torch::ones({2, 2})});
              }),
              HasSubstr("weight must be"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                return MSE()(torch::zeros({3, 1}), torch::zeros({3}));
              }),
              HasSubstr("[loss.MSE] expected output and target of one shape, got [3, 1] and [3]"));
  EXPECT_THAT(test::error_text<UsageError>(
                  [] { return L1()(torch::zeros({3}), torch::zeros({3}, torch::kLong)); }),
              HasSubstr("[loss.L1] expected floating-point output and target, got Float and Long"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                return BCE()(torch::tensor({0.5, 1.5}), torch::zeros({2}));
              }),
              HasSubstr("[loss.BCE] output 1.5 of element 1 is no probability"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                return BCEWithLogits({.pos_weight = torch::ones({3})})(torch::zeros({2}),
                                                                       torch::zeros({2}));
              }),
              HasSubstr("pos_weight [3] cannot be broadcast to the output [2]"));
  EXPECT_THAT(test::error_text<UsageError>([] { return SmoothL1({.beta = -1}); }),
              HasSubstr("beta must be"));
  EXPECT_THAT(test::error_text<UsageError>([] { return Huber({.delta = 0}); }),
              HasSubstr("delta must be"));
  EXPECT_THAT(test::error_text<UsageError>([] { return TripletMargin({.margin = 0}); }),
              HasSubstr("margin must be"));
  EXPECT_THAT(test::error_text<UsageError>([] { return CosineEmbedding({.margin = 2}); }),
              HasSubstr("margin must be"));
  EXPECT_THAT(test::error_text<UsageError>(
                  [&] { return CosineEmbedding()(logits, logits, torch::ones({2})); }),
              HasSubstr("[loss.CosineEmbedding] expected inputs [N, D]"));
}

TEST(AnyLoss, HoldsALossOrAFunction) {
  const at::Tensor x = torch::tensor({1.0, 3.0}).requires_grad_();
  const at::Tensor t = torch::zeros({2});
  Loss loss = MSE();
  EXPECT_EQ(loss.name(), "mse");
  EXPECT_EQ(loss(x, t).item<double>(), 5.0);
  loss(x, t).backward();
  EXPECT_EQ(x.grad()[1].item<double>(), 3.0);
  const Loss copy = loss;  // NOLINT(performance-unnecessary-copy-initialization): what is tested
  EXPECT_EQ(copy.count(x, t), 2);
  const Loss own([](const at::Tensor& y, const at::Tensor& target) { return (y - target).mean(); });
  EXPECT_EQ(own.name(), "loss");
  EXPECT_EQ(own(x, t).item<double>(), 2.0);
  EXPECT_EQ(own.count(torch::zeros({7, 3}), t), 7);
  const Loss named([](const at::Tensor& y, const at::Tensor&) { return y.sum().view({1}); },
                   "mine",
                   [](const at::Tensor&, const at::Tensor&) { return 2.5; });
  EXPECT_EQ(named.name(), "mine");
  EXPECT_EQ(named.count(x, t), 2.5);
  EXPECT_EQ(named(x, t).dim(), 0);
  EXPECT_THAT(test::error_text<UsageError>(
                  [&] { return Loss(MSE({.reduction = Reduction::kNone}))(x, t); }),
              HasSubstr("[loss.Loss] \"mse\" gave [2]: expected one number"));
  EXPECT_FALSE(Loss());
  EXPECT_THAT(test::error_text<UsageError>([&] { return Loss()(x, t); }),
              HasSubstr("there is no loss"));
}

TEST(LossParameters, AreThoseThatAreNotAtTheirDefaults) {
  const at::Tensor weight = torch::tensor({1.0, 2.5});
  EXPECT_EQ(Loss(CrossEntropy()).parameters(), "");
  EXPECT_EQ(Loss(CrossEntropy({.weight = weight, .label_smoothing = 0.1, .ignore_index = 0}))
                .parameters(),
            "weight=[1, 2.5], label_smoothing=0.1, ignore_index=0");
  EXPECT_EQ(Loss(NLL({.reduction = Reduction::kSum})).parameters(), "reduction=sum");
  EXPECT_EQ(Loss(MSE({.reduction = Reduction::kSum})).parameters(), "reduction=sum");
  EXPECT_EQ(Loss(L1()).parameters(), "");
  EXPECT_EQ(Loss(SmoothL1({.beta = 0.5})).parameters(), "beta=0.5");
  EXPECT_EQ(Loss(Huber({.delta = 2, .reduction = Reduction::kNone})).parameters(),
            "delta=2, reduction=none");
  EXPECT_EQ(Loss(BCE({.weight = torch::ones({4, 5})})).parameters(), "weight=[4, 5] numbers");
  EXPECT_EQ(Loss(BCEWithLogits({.pos_weight = weight})).parameters(), "pos_weight=[1, 2.5]");
  EXPECT_EQ(
      Loss(KLDiv({.target = KLTarget::kLogProbabilities, .reduction = KLReduction::kBatchMean}))
          .parameters(),
      "target=log_probabilities, reduction=batchmean");
  EXPECT_EQ(
      Loss([](const at::Tensor& output, const at::Tensor&) { return output.sum(); }).parameters(),
      "");
}

}  // namespace
}  // namespace argosy::loss
