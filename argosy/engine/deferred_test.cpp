#include "argosy/engine/deferred.h"

#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/engine/seed.h"

namespace argosy::engine {
namespace {

bool has_memory(const at::Tensor& tensor) {
  return tensor.storage().data() != nullptr;
}

void expect_bits(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const at::Tensor left = a.detach().contiguous(), right = b.detach().contiguous();
  EXPECT_EQ(std::memcmp(left.data_ptr(), right.data_ptr(), left.nbytes()), 0) << what;
}

/// torch::nn's own layers, as a user's model has them.
struct MixtureImpl : torch::nn::Module {
  MixtureImpl() {
    embed = register_module("embed", torch::nn::Embedding(torch::nn::EmbeddingOptions(90, 64)));
    conv = register_module("conv", torch::nn::Conv1d(64, 32, 3));
    linear = register_module("linear", torch::nn::Linear(64, 64));
    norm = register_module("norm", torch::nn::LayerNorm(std::vector<int64_t>{2048}));
    torch::nn::init::xavier_normal_(linear->weight);
    own = register_parameter("own", torch::empty({40, 40}));
    torch::nn::init::kaiming_uniform_(own);
    scale = register_parameter("scale", torch::full({2000}, 0.5));
    const torch::NoGradGuard no_grad;
    scale.mul_(3).add_(1);
    embed->weight[3].fill_(0);
    (void)register_buffer("seen", torch::zeros({2000}));
    drawn = register_parameter("drawn", torch::randn({50, 50}));
  }
  torch::nn::Embedding embed{nullptr};
  torch::nn::Conv1d conv{nullptr};
  torch::nn::Linear linear{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  at::Tensor own, scale, drawn;
};
TORCH_MODULE(Mixture);

TEST(Deferred, ValuesHaveTheBitsOfAModelThatWasMadeAtOnce) {
  seed_everything(11);
  const Mixture plain;
  const at::Tensor after = torch::rand({3});
  seed_everything(11);
  const auto late = deferred<Mixture>();
  expect_bits(torch::rand({3}), after, "the generator");
  int without = 0;
  for (const auto& item : late->named_parameters()) {
    EXPECT_EQ(has_memory(item.value()), item.value().nbytes() < 4096) << item.key();
    EXPECT_EQ(is_deferred(item.value()), !has_memory(item.value())) << item.key();
    without += is_deferred(item.value()) ? 1 : 0;
  }
  EXPECT_GE(without, 8);
  EXPECT_FALSE(has_memory(late->named_buffers()["seen"]));
  seed_everything(12);
  (void)torch::rand({7});  // what comes in between
  for (const auto& item : plain->named_parameters()) {
    expect_bits(late->named_parameters()[item.key()] * 1, item.value(), item.key());
    EXPECT_TRUE(has_memory(late->named_parameters()[item.key()])) << "it stays";
    EXPECT_FALSE(is_deferred(late->named_parameters()[item.key()]));
  }
}

TEST(Deferred, APartIsThatOfTheWhole) {
  seed_everything(4);
  const Mixture plain;
  seed_everything(4);
  const auto late = deferred<Mixture>();
  for (const auto& item : plain->named_parameters()) {
    const at::Tensor parameter = late->named_parameters()[item.key()];
    if (!is_deferred(parameter)) {
      continue;
    }
    const int64_t elements = parameter.numel();
    for (const IndexRange range :
         {IndexRange{0, elements}, {elements / 3, elements / 2}, {elements - 1, elements}}) {
      const at::Tensor part = torch::empty({range.size()});
      draw_part(parameter, part, range);
      expect_bits(
          part, item.value().detach().view(-1).slice(0, range.begin, range.end), item.key());
    }
    EXPECT_FALSE(has_memory(parameter)) << item.key();
  }
}

TEST(Deferred, WhatIsDoneAfterwardsIsKept) {
  seed_everything(6);
  auto late = deferred<torch::nn::Linear>(64, 64);
  at::Tensor weight = late->weight;
  seed_everything(6);
  torch::nn::Linear plain(64, 64);
  {
    const torch::NoGradGuard no_grad;
    weight.mul_(2);
    plain->weight.mul_(2);
  }
  expect_bits(weight, plain->weight, "mul_");
  late(torch::ones({2, 64})).sum().backward();
  plain(torch::ones({2, 64})).sum().backward();
  expect_bits(late->weight.grad(), plain->weight.grad(), "grad");
}

TEST(Deferred, WhatCannotBeNotedIsRightAllTheSame) {
  const auto make = [] {
    at::Tensor made = torch::empty({64, 64}).normal_();
    const torch::NoGradGuard no_grad;
    at::Tensor second = torch::ones({64, 64}) * 3;
    made.add_(second);
    second.zero_();  // too late
    made.clamp_(-1, 3.5);
    return made + torch::nn::init::orthogonal_(torch::empty({64, 64})) + torch::arange(64);
  };
  seed_everything(2);
  const at::Tensor plain = make();
  seed_everything(2);
  const Deferred guard;
  const Deferred inner;
  expect_bits(make(), plain, "made");
}

TEST(Deferred, OtherTypesAndGenerators) {
  const auto make = [](const at::TensorOptions& options) {
    at::Generator own = at::make_generator<at::CPUGeneratorImpl>(77);
    return torch::zeros({3000}, options).normal_(1, 2, own).div_(3);
  };
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::Tensor plain = make(type);
    at::Tensor late;
    {
      const Deferred guard;
      late = make(type);
      EXPECT_FALSE(has_memory(late));
    }
    expect_bits(late + 0, plain, c10::toString(type));
  }
}

TEST(Deferred, DrawsByRange) {
  const DrawRange squares = [](int64_t first, std::span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((first + static_cast<int64_t>(i)) % 1000);
    }
  };
  const at::Tensor plain = torch::zeros({300, 200});
  draw_values(plain, squares, "squares");
  EXPECT_EQ(plain[2][3].item<float>(), 403);
  at::Tensor late, other;
  {
    const Deferred guard;
    late = torch::zeros({300, 200});
    other = torch::zeros({300, 200});
  }
  EXPECT_EQ(identity_of_values(late), identity_of_values(other));
  draw_values(late, squares, "squares");
  EXPECT_NE(identity_of_values(late), identity_of_values(other));
  EXPECT_FALSE(has_memory(late));
  const at::Tensor part = torch::empty({70});
  draw_part(late, part, {350, 420});
  expect_bits(part, plain.view(-1).slice(0, 350, 420), "part");
  expect_bits(late.clone(), plain, "whole");
  draw_values(
      late, [](int64_t, std::span<float> values) { std::ranges::fill(values, 2.0F); }, "2");
  EXPECT_EQ(late.sum().item<float>(), 120000);
}

/// A list of tensors of which some are missing.
TEST(Deferred, IndicesGetTheirMemory) {
  at::Tensor rows;
  {
    const Deferred guard;
    rows = torch::zeros({2}, at::kLong);
  }
  const at::Tensor x = torch::arange(6).view({2, 3});
  EXPECT_TRUE(
      x.index({torch::indexing::Slice(), rows}).equal(torch::tensor({0, 0, 3, 3}).view({2, 2})));
}

TEST(Deferred, IdentitiesTellSeedsApart) {
  const auto identity = [](uint64_t seed, double bound) {
    seed_everything(seed);
    const Deferred guard;
    return identity_of_values(torch::empty({2000}).uniform_(0, bound));
  };
  EXPECT_EQ(identity(1, 1), identity(1, 1));
  EXPECT_NE(identity(1, 1), identity(2, 1));
  EXPECT_NE(identity(1, 1), identity(1, 2));
}

TEST(Deferred, DirectUsesAndBringMemory) {
  const auto net = deferred<torch::nn::Linear>(64, 64);
  {
    const DirectUse use({net->weight});
    EXPECT_TRUE(has_memory(net->weight));
  }
  EXPECT_TRUE(has_memory(net->weight)) << "it stays";
  const auto other = deferred<torch::nn::Linear>(64, 64);
  bring_memory(*other);
  EXPECT_TRUE(has_memory(other->weight));
  EXPECT_THROW(draw_part(other->weight, torch::empty({1}), {0, 1}), UsageError);
}

}  // namespace
}  // namespace argosy::engine
