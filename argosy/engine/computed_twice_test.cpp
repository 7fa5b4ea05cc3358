#include "argosy/engine/computed_twice.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace argosy::engine {
namespace {

bool has_memory(const at::Tensor& tensor) {
  return tensor.storage().data() != nullptr;
}

struct Product {
  at::Tensor a = torch::ones({2, 2});
  at::Tensor result{};
  void operator()() { result = a.mm(a); }
};

TEST(ComputedTwice, LeavesOutTheEndUntilItIsUsedOrOver) {
  Product product;
  ComputedTwice twice;
  const auto body = [&] { product(); };
  twice.first(body);
  EXPECT_TRUE(has_memory(product.result));
  twice.again(body);
  EXPECT_FALSE(has_memory(product.result));
  EXPECT_EQ(product.result.sum().item<float>(), 8);
  twice.again(body);
  EXPECT_FALSE(has_memory(product.result));
  twice.finish();
  EXPECT_TRUE(has_memory(product.result));
}

/// What follows there is not heard of.
TEST(ComputedTwice, BringsLateResultsBeforeAComputationWithin) {
  Product product;
  ComputedTwice outer, inner;
  bool has = false;
  const auto body = [&] {
    product();
    inner.first([&] { has = has_memory(product.result); });
  };
  outer.first(body);
  outer.again(body);
  EXPECT_TRUE(has);
}

}  // namespace
}  // namespace argosy::engine
