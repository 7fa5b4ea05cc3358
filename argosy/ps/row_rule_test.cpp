#include "argosy/ps/row_rule.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::ps {
namespace {

constexpr double kRate = 0.05;
constexpr size_t kDim = 3;

/// A row that a rule updates.
struct TestRow {
  explicit TestRow(const RowRule& rule) : state(rule.state_size(kDim)) { rule.begin(state); }
  std::vector<float> weights{0.5F, -0.25F, 0.125F};
  std::vector<float> state;

  void update(const RowRule& rule, const std::vector<float>& gradient, float shows = 1) {
    const RowUpdate one{.weights = weights.data(),
                        .state = state.data(),
                        .gradient = gradient.data(),
                        .shows = shows};
    rule.update({&one, 1}, kDim, kRate);
  }
};

const std::vector<std::vector<float>> kGradients{
    {1.0F, -2.0F, 0.5F}, {0.25F, 0.0F, -1.5F}, {-3.0F, 1.0F, 1.0F}};

TEST(RowRule, NaiveTakesAStepAgainstTheGradient) {
  const auto rule = naive();
  TestRow row(*rule);
  row.update(*rule, kGradients[0]);
  EXPECT_FLOAT_EQ(row.weights[0], 0.5F - 0.05F * 1.0F);
  EXPECT_FLOAT_EQ(row.weights[1], -0.25F + 0.05F * 2.0F);
  EXPECT_TRUE(row.state.empty());
}

TEST(RowRule, AdagradKeepsOneSumForARow) {
  const auto rule = adagrad({.initial_g2sum = 3});
  TestRow row(*rule);
  std::vector<double> weights{0.5, -0.25, 0.125};
  double sum = 0;
  const float shows = 2;
  for (const std::vector<float>& gradient : kGradients) {
    row.update(*rule, gradient, shows);
    double squares = 0;
    for (size_t i = 0; i < kDim; ++i) {
      const double scaled = gradient[i] / shows;
      weights[i] -= kRate * scaled * std::sqrt(3 / (3 + sum));
      squares += scaled * scaled;
    }
    sum += squares / kDim;
    for (size_t i = 0; i < kDim; ++i) {
      EXPECT_NEAR(row.weights[i], weights[i], 1e-6);
    }
  }
  ASSERT_EQ(row.state.size(), 1U);
  EXPECT_NEAR(row.state[0], sum, 1e-6);
}

TEST(RowRule, StdAdagradKeepsOneForEachWeight) {
  const auto rule = std_adagrad({.initial_g2sum = 3});
  TestRow row(*rule);
  std::vector<double> weights{0.5, -0.25, 0.125};
  std::vector<double> sums(kDim);
  for (const std::vector<float>& gradient : kGradients) {
    row.update(*rule, gradient);
    for (size_t i = 0; i < kDim; ++i) {
      weights[i] -= kRate * gradient[i] * std::sqrt(3 / (3 + sums[i]));
      sums[i] += gradient[i] * gradient[i];
      EXPECT_NEAR(row.weights[i], weights[i], 1e-6);
      EXPECT_NEAR(row.state[i], sums[i], 1e-6);
    }
  }
}

TEST(RowRule, AdamCorrectsItsBiasByTheUpdatesOfTheRow) {
  const auto rule = adam();
  TestRow row(*rule);
  std::vector<double> weights{0.5, -0.25, 0.125};
  std::vector<double> first(kDim), second(kDim);
  for (int step = 1; step <= 3; ++step) {
    const std::vector<float>& gradient = kGradients[static_cast<size_t>(step - 1)];
    row.update(*rule, gradient);
    for (size_t i = 0; i < kDim; ++i) {
      first[i] = 0.9 * first[i] + 0.1 * gradient[i];
      second[i] = 0.999 * second[i] + 0.001 * gradient[i] * gradient[i];
      const double rate = kRate * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
      weights[i] -= rate * first[i] / (std::sqrt(second[i]) + 1e-8);
      EXPECT_NEAR(row.weights[i], weights[i], 2e-5) << step;
    }
  }
}

TEST(RowRule, SharedAdamKeepsTheMeansOfTheMoments) {
  const auto rule = shared_adam();
  TestRow row(*rule);
  std::vector<double> weights{0.5, -0.25, 0.125};
  double first = 0;
  double second = 0;
  for (int step = 1; step <= 3; ++step) {
    const std::vector<float>& gradient = kGradients[static_cast<size_t>(step - 1)];
    row.update(*rule, gradient);
    double firsts = 0;
    double seconds = 0;
    for (size_t i = 0; i < kDim; ++i) {
      const double m = 0.9 * first + 0.1 * gradient[i];
      const double v = 0.999 * second + 0.001 * gradient[i] * gradient[i];
      const double rate = kRate * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
      weights[i] -= rate * m / (std::sqrt(v) + 1e-8);
      firsts += m;
      seconds += v;
      EXPECT_NEAR(row.weights[i], weights[i], 2e-5) << step;
    }
    first = firsts / kDim;
    second = seconds / kDim;
  }
  EXPECT_NEAR(row.state[0], first, 1e-6);
  EXPECT_NEAR(row.state[1], second, 1e-6);
}

TEST(RowRule, WeightsStayInTheirBounds) {
  const WeightBounds bounds{-0.3F, 0.3F};
  for (const auto& rule : {naive({.bounds = bounds}),
                           adagrad({.bounds = bounds}),
                           std_adagrad({.bounds = bounds}),
                           adam({.bounds = bounds}),
                           shared_adam({.bounds = bounds})}) {
    TestRow row(*rule);
    row.update(*rule, {-100.0F, 100.0F, std::numeric_limits<float>::quiet_NaN()});
    for (const float weight : row.weights) {
      EXPECT_GE(weight, -0.3F) << rule->name();
      EXPECT_LE(weight, 0.3F) << rule->name();
    }
  }
}

TEST(RowRule, IsFoundByName) {
  for (const char* const name : {"naive", "adagrad", "std_adagrad", "adam", "shared_adam"}) {
    EXPECT_EQ(row_rule(name)->name(), name);
  }
  EXPECT_THROW((void)row_rule("sgd"), UsageError);
  EXPECT_THROW((void)adam({.beta1 = 1}), UsageError);
  EXPECT_THROW((void)adagrad({.initial_g2sum = 0}), UsageError);
  EXPECT_THROW((void)naive({.bounds = {1, -1}}), UsageError);
}

}  // namespace
}  // namespace argosy::ps
