#include "argosy/text/models/gpt.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/seed.h"
#include "argosy/engine/state_dict.h"
#include "argosy/parallel/recompute.h"
#include "argosy/text/models/initial_weights.h"

namespace argosy::text {
namespace {

using testing::HasSubstr;

GptOptions small(const std::string& family) {
  return gpt_options(family + ":vocab_size=61,layers=3,width=32,heads=4,hidden=80,context=24" +
                     (family == "llama" ? ",kv_heads=2" : ""));
}

at::Tensor some_tokens(int64_t sequences, int64_t length, int64_t vocabulary = 61) {
  return (at::arange(sequences * length, at::kLong) * 7919 + 13)
      .remainder(vocabulary)
      .view({sequences, length});
}

/// Large enough weights that attention is not all the same.
void enlarge(const Gpt& model) {
  const at::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters()) {
    const at::Tensor& parameter = item.value();
    if (parameter.dim() == 2) {
      parameter.mul_(8);
    } else if (item.key().ends_with("bias")) {
      parameter.copy_(at::linspace(-0.3, 0.4, parameter.numel()));
    }
  }
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

class EachFamily : public testing::TestWithParam<const char*> {
 protected:
  GptOptions options_ = small(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Gpt, EachFamily, testing::Values("gpt", "llama"));

TEST_P(EachFamily, HasShapesAndTheParametersThatOptionsCount) {
  const Gpt model(options_);
  EXPECT_EQ(model.ptr()->forward(some_tokens(2, 9)).sizes(), (at::IntArrayRef{2, 9, 61}));
  EXPECT_EQ(model.ptr()->forward(some_tokens(1, 24)).sizes(), (at::IntArrayRef{1, 24, 61}));
  EXPECT_EQ(model->blocks->size(), 3);
  int64_t count = 0;
  for (const at::Tensor& parameter : model->parameters()) {
    count += parameter.numel();
  }
  EXPECT_EQ(count, options_.parameters());
}

TEST_P(EachFamily, ALaterTokenNeverChangesAnEarlierLogit) {
  Gpt model(options_);
  enlarge(model);
  const at::NoGradGuard no_grad;
  at::Tensor tokens = some_tokens(2, 12);
  const at::Tensor before = model(tokens);
  tokens.slice(1, 7).add_(5).remainder_(61);
  const at::Tensor after = model(tokens);
  EXPECT_TRUE(at::equal(before.slice(1, 0, 7), after.slice(1, 0, 7)));
  EXPECT_FALSE(at::allclose(before.slice(1, 7), after.slice(1, 7)));
  // Nor does another sequence of the batch.
  EXPECT_TRUE(at::allclose(model(tokens.slice(0, 0, 1)), after.slice(0, 0, 1), 1e-5, 1e-5));
}

TEST_P(EachFamily, TheOrderOfTokensCounts) {
  Gpt model(options_);
  enlarge(model);
  const at::NoGradGuard no_grad;
  const at::Tensor one = at::tensor({3, 5, 9}, at::kLong).unsqueeze(0);
  const at::Tensor other = at::tensor({5, 3, 9}, at::kLong).unsqueeze(0);
  EXPECT_FALSE(at::allclose(model(one).select(1, 2), model(other).select(1, 2), 1e-3, 1e-3));
}

TEST_P(EachFamily, TheLossIsTheCrossEntropyOfTheLogits) {
  Gpt model(options_);
  enlarge(model);
  const at::Tensor tokens = some_tokens(2, 11);
  at::Tensor targets = some_tokens(2, 11).add(3).remainder(61);
  targets[1].slice(0, 4).fill_(-100);
  std::vector<at::Tensor> gradients[2];
  at::Tensor values[2];
  for (int way = 0; way < 2; ++way) {
    model->zero_grad();
    values[way] = way == 0 ? model->loss(tokens, targets)
                           : at::cross_entropy_loss(model(tokens).flatten(0, 1), targets.flatten());
    values[way].backward();
    for (const at::Tensor& parameter : model->parameters()) {
      gradients[way].push_back(parameter.grad().clone());
    }
  }
  EXPECT_EQ(values[0].dim(), 0);
  EXPECT_NEAR(values[0].item<double>(), values[1].item<double>(), 1e-5);
  for (std::size_t i = 0; i < gradients[0].size(); ++i) {
    EXPECT_TRUE(at::allclose(gradients[0][i], gradients[1][i], 1e-4, 1e-6)) << i;
  }
}

TEST_P(EachFamily, GradientsAreThoseOfDifferences) {
  Gpt model(options_);
  enlarge(model);
  model->to(at::kDouble);
  const at::Tensor tokens = some_tokens(2, 6);
  const at::Tensor targets = some_tokens(2, 6).add(1).remainder(61);
  model->loss(tokens, targets).backward();
  const at::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters()) {
    const at::Tensor flat = item.value().view({-1});
    const at::Tensor gradient = item.value().grad().view({-1});
    const int64_t most = gradient.abs().argmax().item<int64_t>();
    const double kept = flat[most].item<double>();
    constexpr double kStep = 1e-5;
    flat[most] = kept + kStep;
    const double above = model->loss(tokens, targets).item<double>();
    flat[most] = kept - kStep;
    const double below = model->loss(tokens, targets).item<double>();
    flat[most] = kept;
    const double expected = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient[most].item<double>(), expected, 1e-5 * std::abs(expected) + 1e-8)
        << item.key();
  }
}

TEST_P(EachFamily, EveryParameterIsTheDrawOfItsName) {
  const Gpt model(options_);
  model.ptr()->initialize(11);
  for (const auto& item : model->named_parameters()) {
    const at::Tensor flat = item.value().detach().view({-1});
    std::vector<float> part(static_cast<std::size_t>(std::min<int64_t>(flat.numel() - 3, 50)));
    draw_initial(options_, 11, item.key(), 3, part);
    EXPECT_TRUE(
        at::equal(flat.slice(0, 3, 3 + static_cast<int64_t>(part.size())), at::tensor(part)))
        << item.key();
    const bool of_norm = item.key().find("norm") != std::string::npos;
    if (item.value().dim() == 1) {
      EXPECT_EQ(flat.min().item<float>(), of_norm && item.key().ends_with("weight") ? 1 : 0);
    } else {
      const bool ends = item.key().find("out.weight") != std::string::npos ||
                        item.key().find("down.weight") != std::string::npos;
      const double deviation = ends ? 0.02 / std::sqrt(6.0) : 0.02;
      EXPECT_NEAR(flat.std().item<double>(), deviation, 0.15 * deviation) << item.key();
    }
  }
}

TEST_P(EachFamily, AModelHasTheWeightsOfTheProgramsSeed) {
  seed_everything(21);
  const Gpt one(options_);
  const Gpt two(options_);
  seed_everything(22, /*rank=*/1);
  const Gpt other(options_);
  const Gpt as_drawn(options_);
  as_drawn.ptr()->initialize(21);
  const auto first = one->named_parameters();
  EXPECT_TRUE(at::equal(first["embed.weight"], two->named_parameters()["embed.weight"]));
  EXPECT_FALSE(at::equal(first["embed.weight"], other->named_parameters()["embed.weight"]));
  EXPECT_TRUE(at::equal(first["blocks.2.mlp.down.weight"],
                        as_drawn->named_parameters()["blocks.2.mlp.down.weight"]));
}

TEST_P(EachFamily, InitializesOtherTypesByRounding) {
  const Gpt model(options_);
  model.ptr()->initialize(5);
  const Gpt narrow(options_);
  narrow.ptr()->to(at::kBFloat16);
  narrow.ptr()->initialize(5);
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(at::equal(item.value().to(at::kBFloat16), narrow->named_parameters()[item.key()]));
  }
}

TEST_P(EachFamily, AClonePredictsTheSame) {
  Gpt model(options_);
  enlarge(model);
  const auto copy = std::dynamic_pointer_cast<GptImpl>(model->clone());
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = some_tokens(1, 8);
  EXPECT_TRUE(at::equal(copy->forward(tokens), model(tokens)));
  copy->parameters()[0].add_(1);
  EXPECT_FALSE(at::equal(copy->forward(tokens), model(tokens)));
}

TEST_P(EachFamily, BlocksCanBeRecomputed) {
  Gpt model(options_);
  enlarge(model);
  const at::Tensor tokens = some_tokens(2, 10);
  std::vector<at::Tensor> gradients[2];
  double values[2] = {};
  int calls = 0;
  for (int way = 0; way < 2; ++way) {
    if (way == 1) {
      model->set_block_runner([&](const GptBlock& block, const at::Tensor& x) {
        ++calls;
        return parallel::recompute(block, x);
      });
    }
    model->zero_grad();
    const at::Tensor loss = model->loss(tokens, tokens);
    loss.backward();
    values[way] = loss.item<double>();
    for (const at::Tensor& parameter : model->parameters()) {
      gradients[way].push_back(parameter.grad().clone());
    }
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(values[0], values[1]);
  for (std::size_t i = 0; i < gradients[0].size(); ++i) {
    EXPECT_TRUE(at::equal(gradients[0][i], gradients[1][i])) << i;
  }
}

TEST_P(EachFamily, DropsOnlyInTraining) {
  GptOptions options = options_;
  options.dropout = 0.4;
  Gpt model(options);
  const at::Tensor tokens = some_tokens(1, 8);
  EXPECT_FALSE(at::equal(model(tokens), model(tokens)));
  model->loss(tokens, tokens).backward();
  EXPECT_TRUE(at::isfinite(model->parameters()[0].grad()).all().item<bool>());
  model->eval();
  EXPECT_TRUE(at::equal(model(tokens), model(tokens)));
}

TEST(Gpt, TheHeadIsTiedOrNot) {
  GptOptions options = small("gpt");
  const Gpt tied(options);
  options.tied = false;
  const Gpt untied(options);
  EXPECT_FALSE(tied->named_parameters().contains("head.weight"));
  EXPECT_TRUE(untied->named_parameters().contains("head.weight"));
  const at::Tensor tokens = at::full({1, 4}, 7, at::kLong);
  tied.ptr()->loss(tokens, tokens).backward();
  untied.ptr()->loss(tokens, tokens).backward();
  // Of the table of a tied head every row gets a gradient, else only those of the tokens.
  const auto rows = [](const Gpt& model) {
    return model->named_parameters()["embed.weight"]
        .grad()
        .abs()
        .sum(1)
        .gt(0)
        .sum()
        .item<int64_t>();
  };
  EXPECT_EQ(rows(tied), 61);
  EXPECT_EQ(rows(untied), 1);
}

TEST(Gpt, SaysWhatIsWrongWithTokens) {
  Gpt model(small("gpt"));
  const auto forward = [&](const at::Tensor& tokens) { return error_of([&] { model(tokens); }); };
  EXPECT_THAT(forward(at::zeros({4}, at::kLong)),
              HasSubstr("expected tokens [N, T] of Long, got [4] Long. Use tokens.unsqueeze(0)"));
  EXPECT_THAT(forward(at::zeros({1, 4})), HasSubstr("got [1, 4] Float"));
  EXPECT_THAT(forward(at::Tensor()), HasSubstr("got nothing"));
  EXPECT_THAT(forward(at::zeros({0, 4}, at::kLong)), HasSubstr("got [0, 4] Long"));
  EXPECT_THAT(forward(some_tokens(1, 25)),
              HasSubstr("25 tokens are more than the model's context of 24"));
  EXPECT_THAT(forward(at::full({1, 2}, 61, at::kLong)),
              HasSubstr("token 61 is outside the vocabulary of 61 tokens (0 to 60)"));
  EXPECT_THAT(forward(at::full({1, 2}, -1, at::kLong)), HasSubstr("token -1 is outside"));
  const at::Tensor tokens = some_tokens(1, 4);
  const auto loss = [&](const at::Tensor& targets) {
    return error_of([&] { model->loss(tokens, targets); });
  };
  EXPECT_THAT(
      loss(some_tokens(1, 5)),
      HasSubstr("expected targets of Long in the shape of the tokens [1, 4], got [1, 5] Long"));
  EXPECT_THAT(loss(at::full({1, 4}, 61, at::kLong)),
              HasSubstr("target 61 of row 0 is outside the vocabulary of 61 tokens"));
}

TEST(Gpt, TheLossOfNoTargetIsNotANumber) {
  Gpt model(small("gpt"));
  const at::Tensor none = at::full({1, 4}, -100, at::kLong);
  EXPECT_TRUE(std::isnan(model->loss(some_tokens(1, 4), none).item<double>()));
}

}  // namespace
}  // namespace argosy::text
