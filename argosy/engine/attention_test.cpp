#include "argosy/engine/attention.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

namespace argosy::engine {
namespace {

TEST(FusedAttention, IsThatOfTheOperatorsWhereItIsThere) {
  const at::Tensor q = at::randn({2, 3, 7, 8}, at::kDouble).requires_grad_();
  const at::Tensor k = at::randn({2, 3, 7, 8}, at::kDouble).requires_grad_();
  const at::Tensor v = at::randn({2, 3, 7, 8}, at::kDouble).requires_grad_();
  if (!has_fused_attention()) {
    EXPECT_THROW((void)fused_causal_attention(q, k, v), UsageError);
    return;
  }
  const at::Tensor later = at::ones({7, 7}, at::kBool).triu(1);
  const at::Tensor scores = (at::matmul(q, k.transpose(2, 3)) / std::sqrt(8.0))
                                .masked_fill(later, -std::numeric_limits<double>::infinity());
  const at::Tensor expected = at::matmul(at::softmax(scores, -1), v);
  const at::Tensor found = fused_causal_attention(q, k, v);
  EXPECT_TRUE(at::allclose(found, expected));
  const auto of = [&](const at::Tensor& y) {
    return torch::autograd::grad({y.square().sum()}, {q, k, v});
  };
  const auto one = of(found), other = of(expected);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(at::allclose(one[i], other[i]));
  }
}

}  // namespace
}  // namespace argosy::engine
