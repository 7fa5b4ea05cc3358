// What metrics keep in a checkpoint, AnyMetric, errors of regression and throughput.
#include <array>
#include <chrono>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/metrics/classes_test_support.h"
#include "argosy/metrics/metrics.h"

namespace argosy::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

struct Case {
  const char* name;
  AnyMetric metric;
  at::Tensor output, labels;
};

std::vector<Case> cases() {
  const GoldenSamples s;
  const ClassMeasureOptions five{.num_classes = 5};
  return {{"accuracy", Accuracy({.topk = {1, 3}}), s.logits, s.labels},
          {"precision", Precision(), s.scores, s.positive},
          {"recall", Recall(five), s.logits, s.labels},
          {"f1", F1({.num_classes = 5, .average = Average::kNone}), s.logits, s.labels},
          {"roc", Auc(), s.scores - 0.3, s.positive},
          {"pr", Auc({.curve = Curve::kPr}), s.scores, s.positive},
          {"binned", Auc({.num_thresholds = 20}), s.scores, s.positive},
          {"mse", MeanSquaredError(), s.scores.sub(0.7).exp(), s.positive},
          {"mae", MeanAbsoluteError(), s.scores.mul(-1e5), s.positive},
          {"perplexity", Perplexity(), s.logits, s.labels}};
}

void update(AnyMetric& metric, const Case& c, int64_t from, int64_t to) {
  metric.update(c.output.slice(0, from, to), c.labels.slice(0, from, to));
}

TEST(State, GoesOnToTheBitInMidEpoch) {
  for (Case& c : cases()) {
    AnyMetric whole = c.metric;
    update(whole, c, 0, 211);
    AnyMetric first = c.metric;
    update(first, c, 0, 90);
    const State kept = first.state();
    AnyMetric second = c.metric;
    update(second, c, 3, 8);  // what was counted before is replaced
    second.load_state(kept);
    EXPECT_EQ(second.state(), kept) << c.name;
    EXPECT_EQ(second.values(), first.values()) << c.name;
    update(second, c, 90, 211);
    EXPECT_EQ(second.values(), whole.values()) << c.name;
    EXPECT_NE(second.values(), first.values()) << c.name;
    EXPECT_EQ(second.names().size(), second.values().size()) << c.name;
    second.reset();
    EXPECT_EQ(second.state(), c.metric.state()) << c.name;
  }
}

TEST(State, MergedGivesWhatOneThatHasSeenAllGives) {
  for (Case& c : cases()) {
    AnyMetric whole = c.metric;
    update(whole, c, 0, 211);
    AnyMetric first = c.metric;
    update(first, c, 0, 40);
    const std::vector<double> alone = first.values();
    for (const auto& [from, to] : {std::pair(150, 211), std::pair(40, 41), std::pair(41, 150)}) {
      AnyMetric other = c.metric;
      update(other, c, from, to);
      first.merge_state(other.state());
    }
    ASSERT_TRUE(first.merges()) << c.name;
    EXPECT_EQ(first.values(), whole.values()) << c.name;
    EXPECT_NE(first.values(), alone) << c.name;
    EXPECT_EQ(first.state().size(), whole.state().size()) << c.name;
    first.merge_state(c.metric.state());  // of a rank that has seen nothing
    EXPECT_EQ(first.values(), whole.values()) << c.name;
  }
}

TEST(State, MergedAddsTheMatricesOfConfusion) {
  const at::Tensor labels = torch::tensor({0, 1, 2, 2}, torch::kLong);
  const at::Tensor predicted = torch::tensor({1, 1, 2, 0}, torch::kLong);
  ConfusionMatrix one({.num_classes = 3});
  ConfusionMatrix two({.num_classes = 3});
  one.update(predicted.slice(0, 0, 3), labels.slice(0, 0, 3));
  two.update(predicted.slice(0, 3, 4), labels.slice(0, 3, 4));
  one.merge_state(two.state());
  EXPECT_TRUE(one.compute().equal(torch::tensor({{0, 1, 0}, {0, 1, 0}, {1, 0, 1}}, torch::kLong)));
  EXPECT_THAT(usage_error([&] { one.merge_state(ConfusionMatrix({.num_classes = 4}).state()); }),
              HasSubstr("kept with num_classes = 4, this metric has 3"));
}

TEST(State, MergedKeepsNansAndCountsThatAreTooLargeAreRefused) {
  Auc with_nan;
  with_nan.update(torch::tensor({std::nan(""), 0.5}), torch::tensor({1, 0}, torch::kLong));
  Auc auc;
  auc.update(torch::tensor({0.7, 0.1}), torch::tensor({1, 0}, torch::kLong));
  EXPECT_EQ(auc.compute(), 1.0);
  auc.merge_state(with_nan.state());
  EXPECT_TRUE(std::isnan(auc.compute()));

  Accuracy accuracy;
  accuracy.update(torch::tensor({{0.0, 1.0}}), torch::tensor({1}, torch::kLong));
  const State kept = accuracy.state();
  State huge = kept;
  huge.back() = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(usage_error([&] { accuracy.merge_state(huge); }),
              HasSubstr("[metrics.Accuracy] the state is damaged"));
  EXPECT_EQ(accuracy.state(), kept);
}

TEST(State, OfAnythingElseIsRefusedAndChangesNothing) {
  for (Case& c : cases()) {
    update(c.metric, c, 0, 50);
    const State kept = c.metric.state();
    for (size_t length :
         {size_t{0}, size_t{1}, kept.size() / 2, kept.size() - 1, kept.size() + 1}) {
      State other = kept;
      other.resize(length);
      EXPECT_THROW(c.metric.load_state(other), UsageError) << c.name << " " << length;
      EXPECT_THROW(c.metric.merge_state(other), UsageError) << c.name << " " << length;
    }
    EXPECT_THROW(c.metric.load_state(State(kept.size(), -5)), UsageError) << c.name;
    EXPECT_THROW(c.metric.load_state(State(kept.size(), int64_t{1} << 60)), UsageError) << c.name;
    EXPECT_EQ(c.metric.state(), kept) << c.name;
  }
  Accuracy one;
  EXPECT_THAT(usage_error([&] { one.load_state(Accuracy({.topk = {5}}).state()); }),
              HasSubstr("[metrics.Accuracy] the state was kept with topk = 5, this metric has 1"));
}

TEST(State, OfSumsKeepsEveryDigitNanAndInfinity) {
  for (const std::vector<double>& terms : std::vector<std::vector<double>>{
           {1e300, 1e-300, -3}, {-1e-320}, {}, {HUGE_VAL, 1}, {std::nan(""), 2}, {-1, 1}}) {
    SumOverRanks sum;
    MeanLoss loss;
    for (const double term : terms) {
      sum.add(term);
      loss.update(term, 3);
    }
    SumOverRanks again;
    again.load_state(sum.state());
    again.add(-1e300);
    sum.add(-1e300);
    EXPECT_EQ(bits_of(again.value()), bits_of(sum.value()));
    EXPECT_EQ(again.state(), sum.state());
    MeanLoss mean;
    mean.load_state(loss.state());
    EXPECT_EQ(bits_of(mean.compute()), bits_of(loss.compute()));
    EXPECT_EQ(mean.count(), loss.count());
  }
}

TEST(State, OfSumsMergesWithoutRounding) {
  const std::vector<double> terms = {1e300, 3, -1e300, 1e-320, -7.25, 1e17, 0.1, -1e17, -3};
  for (size_t cut = 0; cut <= terms.size(); ++cut) {
    SumOverRanks whole;
    std::array<SumOverRanks, 2> parts;
    std::array<MeanLoss, 2> means;
    for (size_t i = 0; i < terms.size(); ++i) {
      whole.add(terms[i]);
      parts[i < cut ? 0 : 1].add(terms[i]);
      means[i < cut ? 0 : 1].update(terms[i]);
    }
    parts[0].merge_state(parts[1].state());
    EXPECT_EQ(parts[0].state(), whole.state());
    means[0].merge_state(means[1].state());
    EXPECT_EQ(means[0].compute(), whole.value() / static_cast<double>(terms.size()));
  }
  SumOverRanks infinite;
  infinite.add(HUGE_VAL);
  SumOverRanks sum;
  sum.merge_state(infinite.state());
  EXPECT_EQ(sum.value(), HUGE_VAL);
  infinite.reset();
  infinite.add(-HUGE_VAL);
  sum.merge_state(infinite.state());
  EXPECT_TRUE(std::isnan(sum.value()));
}

/// What a user writes in a few lines.
struct Seen {
  int64_t samples = 0;
  void update(const at::Tensor& /*output*/, const at::Tensor& labels) { samples += labels.size(0); }
  [[nodiscard]] double compute(const comm::Group& /*group*/) const {
    return static_cast<double>(samples);
  }
  [[nodiscard]] std::vector<std::string> names() const { return {"seen"}; }
  void reset() { samples = 0; }
};

TEST(AnyMetric, TakesAUsersOwnAndSaysWhatACheckpointLacks) {
  std::vector<AnyMetric> list = {Seen(), Accuracy()};
  list[0].update(torch::zeros({3, 2}), torch::zeros({3}, torch::kLong));
  EXPECT_THAT(list[0].values(), ElementsAre(3.0));
  EXPECT_THAT(list[0].names(), ElementsAre("seen"));
  EXPECT_THAT(usage_error([&] { (void)list[0].state(); }),
              HasSubstr("the metric \"seen\" cannot be kept in a checkpoint"));
  EXPECT_THAT(usage_error([&] { list[0].load_state({}); }), HasSubstr("\"seen\""));
  EXPECT_FALSE(list[0].keeps());
  EXPECT_TRUE(list[1].keeps());
  EXPECT_FALSE(list[0].merges());
  EXPECT_THAT(usage_error([&] { list[0].merge_state({}); }),
              HasSubstr("the metric \"seen\" cannot go on with what other ranks have counted"));
  EXPECT_EQ(list[0].get<Seen>()->samples, 3);
  EXPECT_EQ(list[0].get<Accuracy>(), nullptr);
  AnyMetric copy = list[0];
  copy.reset();
  EXPECT_EQ(list[0].get<Seen>()->samples, 3) << "a copy counts for itself";
}

TEST(MeanError, OfKnownNumbers) {
  MeanSquaredError mse;
  MeanAbsoluteError mae;
  const at::Tensor y = torch::tensor({{1.0F, 2.0F}, {3.0F, -4.0F}});
  const at::Tensor t = torch::tensor({{0.0, 2.5}, {3.0, 0.0}}, torch::kDouble);
  mse.update(y, t);
  mae.update(y.t(), t.t());
  EXPECT_EQ(mse.compute(), (1 + 0.25 + 16) / 4);
  EXPECT_EQ(mae.compute(), (1 + 0.5 + 4) / 4);
  EXPECT_EQ(mse.count(), 4);
  EXPECT_TRUE(std::isnan(MeanSquaredError().compute()));
  mse.update(torch::zeros({0}), torch::zeros({0}));
  EXPECT_EQ(mse.count(), 4);
  mse.update(torch::tensor({std::nan("")}), torch::zeros({1}));
  EXPECT_TRUE(std::isnan(mse.compute()));
  EXPECT_THAT(usage_error([&] {
                mae.update(torch::zeros({3, 1}), torch::zeros({3}));
              }),
              HasSubstr("[metrics.MeanAbsoluteError] expected output and target of one shape, got "
                        "[3, 1] and [3]"));
}

TEST(Throughput, IsSamplesOverTimeAndAStopDoesNotCount) {
  std::chrono::nanoseconds now = 100s;
  Throughput throughput({.clock = [&now] { return now; }});
  EXPECT_TRUE(std::isnan(throughput.compute())) << "no time has passed";
  throughput.update(torch::zeros({8, 2}), torch::zeros({8}));
  now += 2s;
  EXPECT_DOUBLE_EQ(throughput.compute(), 4.0);
  const State kept = throughput.state();
  now += 1000s;
  throughput.load_state(kept);
  now += 2s;
  throughput.update(8);
  EXPECT_DOUBLE_EQ(throughput.compute(), 4.0);
  throughput.reset();
  now += 1s;
  EXPECT_EQ(throughput.compute(), 0.0);
  EXPECT_GE(Throughput().state()[1], 0) << "the steady clock";
  Throughput other({.clock = [&now] { return now; }});
  now += 3s;
  other.update(8);
  throughput.update(4);  // in 4 s
  throughput.merge_state(other.state());
  EXPECT_DOUBLE_EQ(throughput.compute(), 3.0) << "of both, over the longer time";
  EXPECT_THAT(usage_error([&] { throughput.update(-1); }), HasSubstr("got -1"));
  EXPECT_THAT(usage_error([&] { throughput.load_state({3}); }), HasSubstr("[metrics.Throughput]"));
}

}  // namespace
}  // namespace argosy::metrics
