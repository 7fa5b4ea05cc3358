// The fused operators against libtorch's own, in f64: values and gradients.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/cpu.h"
#include "argosy/text/ops/activation.h"
#include "argosy/text/ops/causal_attention.h"
#include "argosy/text/ops/linear.h"
#include "argosy/text/ops/rotary.h"
#include "argosy/text/ops/token_loss.h"
#include "argosy/text/ops/token_norm.h"

namespace argosy::text::ops {
namespace {

using Tensors = std::vector<at::Tensor>;
using Operation = std::function<Tensors(const Tensors&)>;

at::Tensor wave(const std::vector<int64_t>& sizes, double scale = 2, double shift = 0) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    count *= size;
  }
  const at::Tensor x = at::arange(count, at::kDouble);
  return ((x * 0.7310 + x * x * 0.00037).sin() * scale + shift).to(at::kFloat).view(sizes);
}

/// The outputs and then the gradients of all inputs, in f64.
Tensors results(const Operation& operation, const Tensors& inputs, at::ScalarType type) {
  Tensors leaves;
  for (const at::Tensor& input : inputs) {
    leaves.push_back(input.defined() ? input.to(type).clone().requires_grad_() : input);
  }
  Tensors all = operation(leaves);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const at::Tensor weights =
        wave(all[i].sizes().vec(), 1, 0.3 + static_cast<double>(i)).to(at::kDouble);
    sum = sum + (all[i].to(at::kDouble) * weights).sum();
    all[i] = all[i].detach().to(at::kDouble);
  }
  sum.backward();
  for (const at::Tensor& leaf : leaves) {
    all.push_back(leaf.defined() ? leaf.grad().to(at::kDouble) : leaf);
  }
  return all;
}

/// In f64 the operations are libtorch's. `tolerance`: a part of the largest value.
void expect_same(const Operation& operation,
                 const Tensors& inputs,
                 double tolerance,
                 at::ScalarType type = at::kFloat) {
  Tensors rounded;
  for (const at::Tensor& input : inputs) {
    rounded.push_back(input.defined() ? input.to(type) : input);
  }
  const Tensors found = results(operation, rounded, type);
  const Tensors expected = results(operation, rounded, at::kDouble);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (expected[i].defined()) {
      const double scale = expected[i].abs().max().item<double>();
      EXPECT_LE((found[i] - expected[i]).abs().max().item<double>(), tolerance * scale)
          << "result " << i;
    }
  }
}

constexpr double kBf16 = 0.012;  // three roundings to 8 bits
/// Of products that sum thousands of numbers.
double of_long_sums() {
  return engine::bf16_products_lose_bits() ? 0.25 : 0.03;
}

TEST(TextOps, GeluIsTheFormula) {
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{3, 64}, {5, 7}, {1}, {2, 3, 33}}) {
    const Operation gelu = [](const Tensors& in) { return Tensors{gelu_tanh(in[0])}; };
    expect_same(gelu, {wave(sizes, 4)}, 2e-6);
    expect_same(gelu, {wave(sizes, 4)}, kBf16, at::kBFloat16);
  }
  // Far from zero it is the ramp, without overflow.
  const at::Tensor far = at::tensor({-1e30F, -200.F, -30.F, 0.F, 30.F, 200.F, 1e9F});
  EXPECT_TRUE(at::equal(gelu_tanh(far), far.clamp_min(0)));
  EXPECT_TRUE(std::isnan(
      gelu_tanh(at::full({20}, std::numeric_limits<float>::quiet_NaN()))[19].item<float>()));
}

TEST(TextOps, SwigluIsTheTwoOperators) {
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{3, 64}, {5, 14}, {2, 3, 66}}) {
    const Operation both = [](const Tensors& in) { return Tensors{swiglu(in[0])}; };
    expect_same(both, {wave(sizes, 4)}, 1e-6);
    expect_same(both, {wave(sizes, 4)}, kBf16, at::kBFloat16);
  }
}

TEST(TextOps, NormsAreThoseOfLibtorch) {
  for (const bool centered : {true, false}) {
    for (const bool has_bias : {true, false}) {
      for (const bool has_branch : {true, false}) {
        for (const std::vector<int64_t>& sizes :
             std::vector<std::vector<int64_t>>{{2, 3, 48}, {1, 5}, {70, 33}, {1, 1, 512}}) {
          const TokenNormOptions options{.centered = centered, .epsilon = 1e-5};
          const Operation norm = [&](const Tensors& in) {
            const AddedNorm both = add_norm(in[0], in[1], {in[2], in[3]}, options);
            return Tensors{both.sum, both.normed};
          };
          const int64_t width = sizes.back();
          expect_same(norm,
                      {wave(sizes, 3, 1),
                       has_branch ? wave(sizes, 1, 2) : at::Tensor(),
                       wave({width}, 0.5, 1),
                       has_bias ? wave({width}) : at::Tensor()},
                      2e-5);
        }
      }
    }
  }
}

TEST(TextOps, ANormAloneIsThatOfTheSum) {
  const Operation norm = [](const Tensors& in) {
    return Tensors{token_norm(in[0], {in[1], in[2]}, TokenNormOptions())};
  };
  expect_same(norm, {wave({4, 40}, 1, 100), wave({40}), wave({40})}, 2e-4);  // far from zero
}

TEST(TextOps, UnderAutocastANormGivesWhatTheProductTakes) {
  const at::Tensor x = wave({4, 32}), branch = wave({4, 32}, 1).to(at::kBFloat16);
  const engine::Autocast autocast;
  const AddedNorm both = add_norm(x, branch, {at::ones({32}), at::Tensor()}, {.centered = false});
  EXPECT_EQ(both.sum.scalar_type(), at::kFloat);
  EXPECT_EQ(both.normed.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(both.sum, x + branch));
}

TEST(TextOps, RotationsAreThoseOfTheFormula) {
  for (const int64_t head_width : {2, 8, 34, 64}) {
    const RotaryTable table = rotary_table(12, head_width, 10000);
    const Operation turn = [&](const Tensors& in) { return Tensors{rotate(in[0], table, 3, 2)}; };
    expect_same(turn, {wave({2, 7, 5 * head_width})}, 1e-6);
    expect_same(turn, {wave({2, 7, 5 * head_width})}, kBf16, at::kBFloat16);
  }
  const RotaryTable table = rotary_table(4, 4, 100);
  EXPECT_NEAR(table.cosine[3][1].item<double>(), std::cos(3 / 10.0), 1e-7);
  EXPECT_NEAR(table.sine[2][0].item<double>(), std::sin(2.0), 1e-7);
}

TEST(TextOps, AttentionIsThatOfTheOperators) {
  for (const HeadShape& shape :
       {HeadShape{4, 4, 16}, HeadShape{6, 2, 8}, HeadShape{4, 1, 20}, HeadShape{1, 1, 64}}) {
    for (const int64_t tokens : {1, 5, 64, 65, 150}) {  // below, at and beyond a block of queries
      const Operation attend = [&](const Tensors& in) {
        return Tensors{causal_attention(in[0], shape)};
      };
      const at::Tensor qkv =
          wave({2, tokens, (shape.heads + 2 * shape.kv_heads) * shape.head_width});
      expect_same(attend, {qkv}, 5e-6);
      if (tokens == 65) {
        expect_same(attend, {qkv}, 4 * kBf16, at::kBFloat16);
      }
    }
  }
}

TEST(TextOps, LongBf16AttentionHasSeveralBlocks) {
  const HeadShape shape{2, 1, 16};
  const Operation attend = [&](const Tensors& in) {
    return Tensors{causal_attention(in[0], shape)};
  };
  expect_same(attend, {wave({1, 300, 64})}, 4 * kBf16, at::kBFloat16);
}

TEST(TextOps, LargeScoresDoNotOverflow) {
  const HeadShape shape{1, 1, 16};
  const Operation attend = [&](const Tensors& in) {
    return Tensors{causal_attention(in[0], shape)};
  };
  expect_same(attend, {wave({1, 70, 48}, 40)}, 1e-3);
}

TEST(TextOps, LinearIsLibtorchs) {
  for (const bool has_bias : {true, false}) {
    const Operation product = [&](const Tensors& in) {
      return Tensors{linear(in[0], in[1], in[2])};
    };
    expect_same(
        product, {wave({2, 35, 24}), wave({300, 24}), has_bias ? wave({300}) : at::Tensor()}, 5e-6);
  }
}

TEST(TextOps, LinearUnderAutocastHasF32Gradients) {
  const at::Tensor x = wave({40, 24}).requires_grad_(),
                   weight = wave({32, 24}, 0.3).requires_grad_(),
                   bias = wave({32}).requires_grad_();
  at::Tensor y;
  {
    const engine::Autocast autocast;
    y = linear(x, weight, bias);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(at::equal(y, at::linear(x, weight, bias)));
  }
  y.to(at::kFloat).square().sum().backward();
  for (const at::Tensor& leaf : {x, weight, bias}) {
    EXPECT_EQ(leaf.grad().scalar_type(), at::kFloat);
  }
  const at::Tensor twice = 2 * at::linear(x, weight, bias).detach();
  const auto close = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>() <= 2 * kBf16 * b.abs().max().item<double>();
  };
  EXPECT_TRUE(close(x.grad(), at::mm(twice, weight.detach())));
  EXPECT_TRUE(close(weight.grad(), at::mm(twice.t(), x.detach())));
  EXPECT_TRUE(close(bias.grad(), twice.sum(0)));
}

TEST(TextOps, TheLossIsTheCrossEntropy) {
  at::Tensor targets = at::arange(300, at::kLong).mul(7).remainder(45);
  targets.slice(0, 100, 230).fill_(-100);  // a whole block of rows and parts of others
  const Operation loss = [&](const Tensors& in) {
    return Tensors{token_loss(in[0], in[1], targets)};
  };
  expect_same(loss, {wave({300, 24}), wave({45, 24})}, 5e-6);
  // Another index, one row, and a gradient for one of both only.
  const Operation last = [&](const Tensors& in) {
    return Tensors{token_loss(in[0], in[1].detach(), targets.slice(0, 0, 1), 44) + 0 * in[1].sum()};
  };
  expect_same(last, {wave({1, 24}, 0.2), wave({45, 24})}, 5e-6);
}

TEST(TextOps, TheLossOfManyClassesIsComputedInBlocks) {
  const at::Tensor targets = at::arange(1200, at::kLong).mul(101).remainder(3000);
  const Operation loss = [&](const Tensors& in) {
    return Tensors{token_loss(in[0], in[1], targets)};
  };
  expect_same(loss, {wave({1200, 8}), wave({3000, 8}, 1)}, 5e-6);  // blocks of 512 rows
}

TEST(TextOps, TheLossUnderAutocast) {
  const at::Tensor targets = at::arange(1200, at::kLong).mul(101).remainder(3000);
  const at::Tensor hidden = wave({1200, 8}).to(at::kBFloat16).requires_grad_();
  const at::Tensor weight = wave({3000, 8}, 1).requires_grad_();
  at::Tensor value;
  {
    const engine::Autocast autocast;
    value = token_loss(hidden, weight, targets);
  }
  (value * 3).backward();
  const at::Tensor x = hidden.detach().to(at::kFloat).requires_grad_();
  const at::Tensor w = weight.detach().clone().requires_grad_();
  const at::Tensor expected = at::cross_entropy_loss(at::linear(x, w), targets);
  (expected * 3).backward();
  EXPECT_EQ(value.scalar_type(), at::kFloat);
  EXPECT_NEAR(value.item<double>(), expected.item<double>(), 0.01 * expected.item<double>());
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_LT((weight.grad() - w.grad()).abs().max().item<double>(),
            of_long_sums() * w.grad().abs().max().item<double>());
  EXPECT_LT((hidden.grad() - x.grad()).abs().max().item<double>(),
            of_long_sums() * x.grad().abs().max().item<double>());
}

TEST(TextOps, TheLossOf16BitParameters) {
  const at::Tensor targets = at::arange(1200, at::kLong).mul(101).remainder(3000);  // three blocks
  const at::Tensor hidden = wave({1200, 8}).to(at::kBFloat16).requires_grad_();
  const at::Tensor weight = wave({3000, 8}, 1).to(at::kBFloat16).requires_grad_();
  const at::Tensor value = token_loss(hidden, weight, targets);
  (value * 3).backward();
  const at::Tensor x = hidden.detach().to(at::kFloat).requires_grad_();
  const at::Tensor w = weight.detach().to(at::kFloat).requires_grad_();
  const at::Tensor expected = at::cross_entropy_loss(at::linear(x, w), targets);
  (expected * 3).backward();
  EXPECT_EQ(value.scalar_type(), at::kFloat);
  EXPECT_NEAR(value.item<double>(), expected.item<double>(), 0.01 * expected.item<double>());
  const auto close = [](const at::Tensor& a, const at::Tensor& b) {
    return a.scalar_type() == at::kBFloat16 &&
           (a - b).abs().max().item<double>() < of_long_sums() * b.abs().max().item<double>();
  };
  EXPECT_TRUE(close(weight.grad(), w.grad()));
  EXPECT_TRUE(close(hidden.grad(), x.grad()));
}

/// Rows that are alike: each block has the same product, and sixteen of them in f32 are exact.
TEST(TextOps, TheLossOf16BitParametersAddsItsBlocksInF32) {
  constexpr int64_t kBlocks = 16, kClasses = 3000;
  const int64_t block = rows_of_logits(1 << 20, kClasses);
  const at::Tensor weight = wave({kClasses, 8}, 1).to(at::kBFloat16).requires_grad_();
  const auto gradient = [&](int64_t rows) {
    weight.mutable_grad().reset();
    token_loss(at::ones({rows, 8}).to(at::kBFloat16), weight, at::zeros({rows}, at::kLong))
        .backward();
    return weight.grad();
  };
  EXPECT_TRUE(at::equal(gradient(kBlocks * block), gradient(block)));
}

TEST(TextOps, BackwardMayRunTwice) {
  const at::Tensor targets = at::arange(6, at::kLong);
  const at::Tensor x = wave({6, 8}).requires_grad_(), weight = wave({9, 8}).requires_grad_();
  const at::Tensor loss = token_loss(x, weight, targets);
  loss.backward({}, /*retain_graph=*/true);
  const at::Tensor once = weight.grad().clone();
  loss.backward();
  EXPECT_TRUE(at::allclose(weight.grad(), 2 * once));
}

// Beside the products, which the matrix library may divide by threads as it likes.
TEST(TextOps, TheNumberOfThreadsDoesNotCount) {
  const HeadShape shape{4, 2, 16};
  const RotaryTable table = rotary_table(200, 16, 100);
  const Operation all = [&](const Tensors& in) {
    const AddedNorm norm = add_norm(in[0], in[1], {in[2], in[3]}, {.centered = true});
    const at::Tensor attended = causal_attention(rotate(norm.normed, table, 6, 0), shape);
    return Tensors{norm.sum, gelu_tanh(attended), swiglu(attended)};
  };
  const Tensors inputs{wave({2, 200, 128}), wave({2, 200, 128}), wave({128}), wave({128})};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Tensors one = results(all, inputs, at::kFloat);
  at::set_num_threads(2);
  const Tensors two = results(all, inputs, at::kFloat);
  at::set_num_threads(before);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(at::equal(one[i], two[i])) << i;
  }
}

TEST(TextOps, ASecondDerivativeIsRefused) {
  const at::Tensor x = wave({3, 16}).requires_grad_();
  const at::Tensor y = gelu_tanh(x).sum();
  try {
    (void)torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("gelu_tanh has no second derivative"));
  }
  const at::Tensor wide = x.detach().to(at::kDouble).requires_grad_();
  const at::Tensor first =
      torch::autograd::grad({gelu_tanh(wide).sum()}, {wide}, {}, true, true)[0];
  first.sum().backward();
  EXPECT_TRUE(wide.grad().defined());
}

}  // namespace
}  // namespace argosy::text::ops
