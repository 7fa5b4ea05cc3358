// The kernels alone: against the formulas in plain double arithmetic, and bit for bit under any
// split.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/optim/kernels/adagrad.h"
#include "argosy/optim/kernels/adam.h"
#include "argosy/optim/kernels/lars.h"
#include "argosy/optim/kernels/norm.h"
#include "argosy/optim/kernels/parallel.h"
#include "argosy/optim/kernels/rmsprop.h"
#include "argosy/optim/kernels/sgd.h"

namespace argosy::optim::kernels {
namespace {

template <typename T>
std::vector<T> noise(std::size_t count, unsigned seed, double low = -1, double high = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<T> values(count);
  for (T& value : values) {
    value = static_cast<T>(uniform(engine));
  }
  return values;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

constexpr std::size_t kCount = 1003;  // no multiple of any vector length

template <typename T>
struct AdamArrays {
  std::vector<T> p = noise<T>(kCount, 1), g = noise<T>(kCount, 2), m = noise<T>(kCount, 3),
                 v = noise<T>(kCount, 4, 0, 1), x = noise<T>(kCount, 5, 0, 1);
  void run(const AdamTerms& terms, std::size_t begin, std::size_t count) {
    adam(terms, &p[begin], &g[begin], &m[begin], &v[begin], &x[begin], count);
  }
};

template <typename T>
class Kernels : public ::testing::Test {};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Kernels, Precisions);

TYPED_TEST(Kernels, AdamGivesTheSameBitsUnderAnySplit) {
  for (const Penalty penalty : {Penalty::kNone, Penalty::kL1, Penalty::kL2}) {
    for (const double beta1 : {0.9, 0.3}) {
      AdamTerms terms{.beta1 = beta1, .correction2 = 0.3, .keep = 0.99};
      terms.gradient = {.scale = 0.7, .limit = 0.5, .penalty = penalty, .coeff = 0.1};
      AdamArrays<TypeParam> whole, split, single;
      whole.run(terms, 0, kCount);
      for (std::size_t begin = 0; begin < kCount; begin += 37) {
        split.run(terms, begin, std::min<std::size_t>(37, kCount - begin));
      }
      for (std::size_t i = 0; i < kCount; ++i) {
        single.run(terms, i, 1);  // the scalar path alone
      }
      EXPECT_TRUE(same_bits(whole.p, split.p) && same_bits(whole.p, single.p));
      EXPECT_TRUE(same_bits(whole.m, split.m) && same_bits(whole.v, split.v));
      EXPECT_TRUE(same_bits(whole.x, split.x));
    }
  }
}

TYPED_TEST(Kernels, AdamIsItsFormula) {
  AdamTerms terms{.step_size = 0.01, .correction2 = 0.3, .keep = 0.99};
  terms.gradient = {.scale = 0.7, .limit = 0.5, .penalty = Penalty::kL1, .coeff = 0.1};
  const AdamArrays<TypeParam> before;
  AdamArrays<TypeParam> after;
  after.run(terms, 0, kCount);
  const double eps = std::numeric_limits<TypeParam>::epsilon();
  for (std::size_t i = 0; i < kCount; ++i) {
    const double p = before.p[i];
    const double g = std::clamp(0.7 * before.g[i], -0.5, 0.5) + 0.1 * ((p > 0) - (p < 0));
    const double m = 0.9 * before.m[i] + 0.1 * g, v = 0.999 * before.v[i] + 0.001 * g * g;
    const double x = std::max<double>(v, before.x[i]);
    EXPECT_NEAR(after.m[i], m, 8 * eps);
    EXPECT_NEAR(after.v[i], v, 8 * eps);
    EXPECT_NEAR(after.x[i], x, 8 * eps);
    EXPECT_NEAR(after.p[i], 0.99 * p - 0.01 * m / (std::sqrt(x) / 0.3 + 1e-8), 8 * eps);
  }
}

TYPED_TEST(Kernels, SgdGivesTheSameBitsUnderAnySplit) {
  for (const bool nesterov : {false, true}) {
    SgdTerms terms{
        .lr = 0.1, .momentum = 0.9, .weight = 0.8, .look_ahead = 0.9, .nesterov = nesterov};
    terms.gradient = {.penalty = Penalty::kL2, .coeff = 0.01};
    const auto g = noise<TypeParam>(kCount, 2);
    auto p = noise<TypeParam>(kCount, 1), b = noise<TypeParam>(kCount, 3);
    auto p2 = p, b2 = b;
    sgd(terms, p.data(), g.data(), b.data(), kCount);
    for (std::size_t begin = 0; begin < kCount; begin += 13) {
      sgd(terms, &p2[begin], &g[begin], &b2[begin], std::min<std::size_t>(13, kCount - begin));
    }
    EXPECT_TRUE(same_bits(p, p2) && same_bits(b, b2));
  }
}

TYPED_TEST(Kernels, RmspropGivesTheSameBitsUnderAnySplit) {
  RmspropTerms terms{.alpha = 0.9, .eps_inside = 0.5, .momentum = 0.8};
  terms.gradient = {.penalty = Penalty::kL2, .coeff = 0.01};
  const auto g = noise<TypeParam>(kCount, 2);
  auto p = noise<TypeParam>(kCount, 1), v = noise<TypeParam>(kCount, 3, 0, 1),
       b = noise<TypeParam>(kCount, 4), m = noise<TypeParam>(kCount, 5);
  auto p2 = p, v2 = v, b2 = b, m2 = m;
  rmsprop(terms, p.data(), g.data(), v.data(), b.data(), m.data(), kCount);
  for (std::size_t i = 0; i < kCount; i += 13) {
    const std::size_t count = std::min<std::size_t>(13, kCount - i);
    rmsprop(terms, &p2[i], &g[i], &v2[i], &b2[i], &m2[i], count);
  }
  EXPECT_TRUE(same_bits(p, p2) && same_bits(v, v2) && same_bits(b, b2) && same_bits(m, m2));
}

TYPED_TEST(Kernels, AdagradGivesTheSameBitsUnderAnySplit) {
  const AdagradTerms terms{.start = 0.1};
  const auto g = noise<TypeParam>(kCount, 2);
  auto p = noise<TypeParam>(kCount, 1), s = noise<TypeParam>(kCount, 3, 0, 1);
  auto p2 = p, s2 = s;
  adagrad(terms, p.data(), g.data(), s.data(), kCount);
  for (std::size_t i = 0; i < kCount; i += 13) {
    adagrad(terms, &p2[i], &g[i], &s2[i], std::min<std::size_t>(13, kCount - i));
  }
  EXPECT_TRUE(same_bits(p, p2) && same_bits(s, s2));
}

TYPED_TEST(Kernels, SumsOfAWholeAreThoseOfTheirFormula) {
  const auto p = noise<TypeParam>(kCount, 1), g = noise<TypeParam>(kCount, 2);
  double of_param = 0, of_update = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double limited = std::clamp<double>(g[i], -0.5, 0.5);
    of_param += double(p[i]) * double(p[i]);
    of_update += limited * limited;
  }
  const Sums sums = lars_norms({.limit = 0.5}, p.data(), g.data(), kCount).value();
  EXPECT_NEAR(sums.param, of_param, 1e-11);
  EXPECT_NEAR(sums.update, of_update, 1e-11);
}

TYPED_TEST(Kernels, NeutralTermsChangeNoBit) {
  constexpr TypeParam kInf = std::numeric_limits<TypeParam>::infinity();
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  std::vector<TypeParam> p{0, TypeParam(-0.0), 3, 1, kInf}, g{1, 2, nan, kInf, 0};
  sgd({.lr = 1}, p.data(), g.data(), nullptr, 5);
  EXPECT_EQ(p[0], -1);
  EXPECT_EQ(p[1], -2);
  EXPECT_TRUE(std::isnan(p[2]));
  EXPECT_EQ(p[3], -kInf);
  EXPECT_EQ(p[4], kInf) << "no penalty must not turn inf into NaN";
}

TYPED_TEST(Kernels, NaNSurvivesLimits) {
  std::vector<TypeParam> data{-5, std::numeric_limits<TypeParam>::quiet_NaN(), 5, 1};
  clamp(data.data(), data.size(), -2, 2);
  EXPECT_EQ(data[0], -2);
  EXPECT_TRUE(std::isnan(data[1]));
  EXPECT_EQ(data[2], 2);
  EXPECT_TRUE(std::isnan(max_abs(data.data(), data.size())));
  EXPECT_EQ(max_abs(data.data(), 1), 2);
  EXPECT_EQ(max_abs(data.data(), 0), 0);
}

TYPED_TEST(Kernels, SumsOfSquaresDoNotOverflow) {
  std::vector<TypeParam> data(kCount, TypeParam(1e30));
  EXPECT_NEAR(sum_of_squares(data.data(), kCount).value() / (kCount * 1e60), 1, 1e-6);
  EXPECT_EQ(sum_of_squares(data.data(), 0).value(), 0);
}

TYPED_TEST(Kernels, SumsOfSquaresAreTheSameHoweverAParameterIsCut) {
  const auto p = noise<TypeParam>(5 * kSquaresBlock + 17, 1), g = noise<TypeParam>(p.size(), 2);
  const double whole = sum_of_squares(p.data(), p.size()).value();
  const Sums norms = lars_norms({}, p.data(), g.data(), p.size()).value();
  EXPECT_EQ(norms.param, whole);
  for (std::size_t cut = 0; cut <= p.size(); cut += kSquaresBlock) {
    ExactSum sum = sum_of_squares(p.data() + cut, p.size() - cut);
    sum.add(sum_of_squares(p.data(), cut));
    EXPECT_EQ(sum.value(), whole) << cut;
    ExactSums both = lars_norms({}, p.data(), g.data(), cut);
    both.add(lars_norms({}, p.data() + cut, g.data() + cut, p.size() - cut));
    EXPECT_EQ(both.value().update, norms.update) << cut;
  }
}

TEST(Pieces, CoverEverythingOnceOnAnyNumberOfThreads) {
  const std::vector<std::size_t> lengths{3, 0, 2 * kBlock + 5, 1, kBlock, 7};
  const std::vector<Piece> pieces = cut(lengths);
  for (const int threads : {1, 2, 5}) {
    std::vector<std::vector<char>> seen;
    for (const std::size_t length : lengths) {
      seen.emplace_back(length, 0);
    }
    for_each_piece(pieces, threads, [&](std::size_t i) {
      for (std::size_t k = 0; k < pieces[i].count; ++k) {
        ++seen[pieces[i].array][pieces[i].begin + k];
      }
    });
    for (const auto& array : seen) {
      EXPECT_EQ(std::count(array.begin(), array.end(), 1), static_cast<long>(array.size()));
    }
  }
  for_each_piece({}, 2, [](std::size_t) { FAIL(); });
}

}  // namespace
}  // namespace argosy::optim::kernels
