// Metrics of classes against scikit-learn 1.9.1 and Paddle 3.3.1: see classes_golden.py.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/metrics/auc.h"
#include "argosy/metrics/class_measure.h"
#include "argosy/metrics/classes_test_support.h"
#include "argosy/metrics/confusion_matrix.h"

namespace argosy::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const GoldenSamples& golden() {
  static const GoldenSamples samples;
  return samples;
}

template <typename M>
M measured(const ClassMeasureOptions& options) {
  M metric(options);
  metric.update(golden().logits.to(torch::kFloat), golden().labels.unsqueeze(1));
  return metric;
}

struct Expected {
  Average average;
  double precision, recall, f1;
};

TEST(ClassMeasure, AveragesAreScikitLearns) {
  for (const Expected& e : {
           Expected{Average::kMacro, 0.48630471489972837, 0.53636956521739132, 0.4804745901325928},
           Expected{Average::kMicro, 0.47867298578199052, 0.47867298578199052, 0.47867298578199052},
           Expected{
               Average::kWeighted, 0.49704017797185357, 0.47867298578199052, 0.46960179911470423},
       }) {
    const ClassMeasureOptions options{.num_classes = 5, .average = e.average};
    EXPECT_NEAR(measured<Precision>(options).compute(), e.precision, 1e-15);
    EXPECT_NEAR(measured<Recall>(options).compute(), e.recall, 1e-15);
    EXPECT_NEAR(measured<F1>(options).compute(), e.f1, 1e-15);
  }
}

TEST(ClassMeasure, EachClassIsScikitLearns) {
  const ClassMeasureOptions options{.num_classes = 5, .average = Average::kNone};
  EXPECT_THAT(measured<Precision>(options).values(),
              ElementsAre(0.44897959183673469,
                          0.56756756756756754,
                          0.46875,
                          0.55000000000000004,
                          0.39622641509433965));
  EXPECT_THAT(measured<Recall>(options).values(),
              ElementsAre(0.44, 0.4375, 0.32608695652173914, 0.47826086956521741, 1.0));
  EXPECT_THAT(measured<F1>(options).values(),
              ElementsAre(0.44444444444444442,
                          0.49411764705882355,
                          0.38461538461538464,
                          0.51162790697674421,
                          0.56756756756756754));
  EXPECT_THAT(Precision({.num_classes = 2, .average = Average::kNone}).names(),
              ElementsAre("precision_0", "precision_1"));
  EXPECT_THAT(F1().names(), ElementsAre("f1"));
}

TEST(ClassMeasure, TwoClassesAreScikitLearnsAndPaddles) {
  const at::Tensor scores = golden().scores.to(torch::kFloat).unsqueeze(1);
  for (const auto type : {torch::kLong, torch::kFloat, torch::kBool}) {
    Precision precision;
    Recall recall;
    F1 f1;
    precision.update(scores, golden().positive.to(type));
    recall.update(scores, golden().positive.to(type));
    f1.update(scores, golden().positive.to(type));
    EXPECT_DOUBLE_EQ(precision.compute(), 0.50476190476190474);
    EXPECT_DOUBLE_EQ(recall.compute(), 0.55789473684210522);
    EXPECT_DOUBLE_EQ(f1.compute(), 0.53);
  }
}

TEST(ClassMeasure, TheThresholdItselfIsPositive) {
  Precision precision({.threshold = 0});
  precision.update(torch::tensor({0.0, -0.1, 3.0}), torch::tensor({1, 1, 0}));
  EXPECT_EQ(precision.compute(), 0.5);
}

TEST(ClassMeasure, NothingOverNothingIsZeroAndNoSamplesAreNan) {
  Precision precision;
  EXPECT_TRUE(std::isnan(precision.compute()));
  precision.update(torch::zeros({0}), torch::zeros({0}));
  EXPECT_TRUE(std::isnan(precision.compute()));
  precision.update(torch::tensor({0.1}), torch::tensor({0}));
  EXPECT_EQ(precision.compute(), 0.0);
  Recall recall({.num_classes = 3});
  EXPECT_TRUE(std::isnan(recall.compute()));
  recall.update(torch::tensor({{1.0, 0.0, 0.0}}), torch::tensor({0}));
  EXPECT_EQ(recall.compute(), 1.0) << "classes 1 and 2 neither occur nor are predicted";
}

TEST(ClassMeasure, ANanScoreStaysVisible) {
  F1 f1;
  f1.update(torch::tensor({0.9, kNan}), torch::tensor({1, 0}));
  EXPECT_TRUE(std::isnan(f1.compute()));
  f1.reset();
  f1.update(torch::tensor({0.9}), torch::tensor({1}));
  EXPECT_EQ(f1.compute(), 1.0);
}

TEST(ClassMeasure, RefusesWhatDoesNotFitAndCountsNothingThen) {
  Precision binary;
  EXPECT_THAT(usage_error([&] {
                binary.update(torch::zeros({2}), torch::tensor({1, 2}));
              }),
              HasSubstr("[metrics.Precision] label 2 in row 1 is neither 0 nor 1"));
  EXPECT_THAT(usage_error([&] {
                binary.update(torch::zeros({2, 3}), torch::tensor({1, 2}));
              }),
              HasSubstr("got [2, 3] and [2]"));
  EXPECT_TRUE(std::isnan(binary.compute()));
  Recall recall({.num_classes = 3});
  EXPECT_THAT(usage_error([&] {
                recall.update(torch::zeros({2, 3}), torch::tensor({0, 3}));
              }),
              HasSubstr("[metrics.Recall] label 3 in row 1 is outside the 3 classes (0 to 2)"));
  EXPECT_THAT(usage_error([&] {
                recall.update(torch::zeros({2, 4}), torch::tensor({0, 0}));
              }),
              HasSubstr("expected scores [N, 3]"));
  EXPECT_TRUE(std::isnan(recall.compute()));
  EXPECT_THAT(usage_error([] { F1({.num_classes = 1}); }), HasSubstr("[metrics.F1] num_classes"));
}

TEST(Auc, ExactAreasAreScikitLearns) {
  Auc roc;
  Auc pr({.curve = Curve::kPr});
  for (Auc* auc : {&roc, &pr}) {
    auc->update(golden().scores.slice(0, 0, 100), golden().positive.slice(0, 0, 100));
    auc->update(golden().scores.slice(0, 100), golden().positive.slice(0, 100).unsqueeze(1));
  }
  EXPECT_NEAR(roc.compute(), 0.60893829401088917, 1e-15);
  EXPECT_NEAR(pr.compute(), 0.55511336935016775, 1e-15);
}

TEST(Auc, BinnedAreasArePaddles) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const at::Tensor p = golden().scores.to(type);
    Auc fine({.num_thresholds = 4095});
    Auc coarse({.num_thresholds = 10});
    for (Auc* auc : {&fine, &coarse}) {
      auc->update(torch::stack({1 - p, p}, 1), golden().positive.unsqueeze(1));
    }
    EXPECT_NEAR(fine.compute(), 0.60893829401088928, 1e-15);
    EXPECT_NEAR(coarse.compute(), 0.6067604355716878, 1e-15);
  }
}

TEST(Auc, EdgesOfScoresAndLabels) {
  auto area =
      [](const std::vector<double>& scores, const std::vector<int64_t>& labels, Curve curve) {
        Auc auc({.curve = curve});
        auc.update(torch::tensor(scores, torch::kDouble), torch::tensor(labels, torch::kLong));
        return auc.compute();
      };
  EXPECT_EQ(area({1, 2, 3, 4}, {0, 0, 1, 1}, Curve::kRoc), 1.0);
  EXPECT_EQ(area({4, 3, 2, 1}, {0, 0, 1, 1}, Curve::kRoc), 0.0);
  EXPECT_EQ(area({7, 7, 7, 7}, {0, 1, 0, 1}, Curve::kRoc), 0.5);
  EXPECT_EQ(area({0.0, -0.0}, {0, 1}, Curve::kRoc), 0.5) << "zeros are equal";
  EXPECT_EQ(area({-kInf, kInf}, {0, 1}, Curve::kRoc), 1.0);
  EXPECT_EQ(area({-kInf, -kInf}, {0, 1}, Curve::kRoc), 0.5);
  EXPECT_TRUE(std::isnan(area({1, 2}, {0, 0}, Curve::kRoc)));
  EXPECT_TRUE(std::isnan(area({1, 2}, {1, 1}, Curve::kRoc)));
  EXPECT_TRUE(std::isnan(area({1, 2}, {0, 0}, Curve::kPr)));
  EXPECT_EQ(area({1, 2}, {1, 1}, Curve::kPr), 1.0);
  EXPECT_TRUE(std::isnan(area({}, {}, Curve::kRoc)));
  EXPECT_TRUE(std::isnan(area({1, 2, kNan}, {0, 1, 1}, Curve::kRoc)));
}

TEST(Auc, RefusesWhatDoesNotFitAndCountsNothingThen) {
  Auc binned({.num_thresholds = 10});
  EXPECT_THAT(usage_error([&] {
                binned.update(torch::tensor({0.5, 1.5}), torch::tensor({0, 1}));
              }),
              HasSubstr("[metrics.Auc] score 1.5 in row 1 is no probability"));
  EXPECT_THAT(usage_error([&] {
                binned.update(torch::tensor({0.5, 0.5}), torch::tensor({0, 7}));
              }),
              HasSubstr("label 7 in row 1"));
  EXPECT_TRUE(std::isnan(binned.compute()));
  binned.update(torch::tensor({0.0, 1.0}), torch::tensor({0, 1}));
  EXPECT_EQ(binned.compute(), 1.0);
  EXPECT_THAT(usage_error([] { Auc({.num_thresholds = -1}); }), HasSubstr("got -1"));
}

TEST(ConfusionMatrix, IsScikitLearns) {
  ConfusionMatrix matrix({.num_classes = 5});
  matrix.update(golden().logits, golden().labels);
  const at::Tensor expected = torch::tensor({{22, 5, 4, 6, 13},
                                             {9, 21, 7, 8, 3},
                                             {8, 7, 15, 4, 12},
                                             {10, 4, 6, 22, 4},
                                             {0, 0, 0, 0, 21}});
  EXPECT_TRUE(matrix.compute().equal(expected)) << matrix.to_string();
  EXPECT_DOUBLE_EQ(matrix.normalized(NormalizeBy::kTrue)[0][4].item<double>(), 13.0 / 50);
  EXPECT_DOUBLE_EQ(matrix.normalized(NormalizeBy::kPredicted)[0][4].item<double>(), 13.0 / 53);
  EXPECT_DOUBLE_EQ(matrix.normalized(NormalizeBy::kAll)[0][4].item<double>(), 13.0 / 211);
  ConfusionMatrix named({.num_classes = 5});
  named.update(golden().logits.argmax(1), golden().labels);
  EXPECT_TRUE(named.compute().equal(expected)) << "classes instead of scores";
}

TEST(ConfusionMatrix, IsATable) {
  ConfusionMatrix matrix({.num_classes = 2});
  EXPECT_TRUE(matrix.normalized(NormalizeBy::kTrue).equal(torch::zeros({2, 2}, torch::kDouble)));
  matrix.update(torch::tensor({1, 1, 0}), torch::tensor({1, 0, 0}));
  const std::string table = matrix.to_string({.classes = {"cat", "dog"}});
  EXPECT_THAT(table, HasSubstr("true \\ predicted  cat  dog"));
  EXPECT_THAT(table, HasSubstr("1    1"));
  EXPECT_THAT(matrix.to_string({.normalize = NormalizeBy::kTrue}), HasSubstr("0.500  0.500"));
  EXPECT_THAT(usage_error([&] { (void)matrix.to_string({.classes = {"cat"}}); }),
              HasSubstr("expected 2 names of classes, got 1"));
  EXPECT_THAT(usage_error([&] { matrix.update(torch::tensor({2}), torch::tensor({0})); }),
              HasSubstr("prediction 2 in row 0 is outside the 2 classes"));
  EXPECT_THAT(usage_error([] { ConfusionMatrix({}); }), HasSubstr("num_classes must be 2"));
}

}  // namespace
}  // namespace argosy::metrics
