#include "argosy/text/models/generate.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/autocast.h"

namespace argosy::text {
namespace {

class Generate : public testing::TestWithParam<const char*> {
 protected:
  Generate()
      : model_(
            gpt_options(std::string(GetParam()) +
                        ":vocab_size=53,layers=2,width=32,heads=4,hidden=64,context=40,kv_heads=" +
                        (std::string(GetParam()) == "llama" ? "2" : "0"))) {
    model_->initialize(3);
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : model_->parameters()) {
      parameter.mul_(parameter.dim() == 2 ? 10 : 1);
    }
  }
  Gpt model_;
  at::Tensor prompts_ = at::tensor({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, at::kLong).view({2, 6});
};
INSTANTIATE_TEST_SUITE_P(Gpt, Generate, testing::Values("gpt", "llama"));

TEST_P(Generate, TheCacheGivesTheLogitsOfTheWhole) {
  const at::NoGradGuard no_grad;
  const at::Tensor whole = model_(prompts_);
  for (const std::vector<int64_t>& parts :
       std::vector<std::vector<int64_t>>{{6}, {1, 1, 1, 1, 1, 1}, {3, 1, 2}}) {
    KeyValueCache cache(model_->options(), 6);
    std::vector<at::Tensor> logits;
    for (const int64_t part : parts) {
      logits.push_back(model_->forward_cached(prompts_.narrow(1, cache.length(), part), cache));
    }
    EXPECT_EQ(cache.length(), 6);
    KeyValueCache other(model_->options(), 6);
    const at::Tensor last = model_->next_logits(prompts_, other);
    EXPECT_TRUE(at::allclose(last, whole.select(1, -1), 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(at::cat(logits, 1), whole, 1e-4, 1e-5)) << parts.size();
  }
}

TEST_P(Generate, TheLikeliestTokenIsThatOfTheLogits) {
  const at::Tensor all = generate(model_, prompts_, {.max_new_tokens = 10, .temperature = 0});
  ASSERT_EQ(all.sizes(), (at::IntArrayRef{2, 16}));
  EXPECT_TRUE(at::equal(all.slice(1, 0, 6), prompts_));
  const at::NoGradGuard no_grad;
  const at::Tensor expected = model_(all).argmax(-1);
  EXPECT_TRUE(at::equal(expected.slice(1, 5, 15), all.slice(1, 6)));
}

TEST_P(Generate, TheSeedDecides) {
  const auto with = [&](uint64_t seed) {
    return generate(model_, prompts_, {.max_new_tokens = 20, .seed = seed});
  };
  EXPECT_TRUE(at::equal(with(1), with(1)));
  EXPECT_FALSE(at::equal(with(1), with(2)));
  // A row does not depend on the others, and rows with one prompt differ.
  const at::Tensor twice = prompts_.slice(0, 0, 1).repeat({2, 1});
  const at::Tensor both = generate(model_, twice, {.max_new_tokens = 20, .seed = 1});
  EXPECT_TRUE(at::equal(both[0], with(1)[0]));
  EXPECT_FALSE(at::equal(both[0], both[1]));
}

TEST_P(Generate, FewTokensOrLittleProbabilityIsTheLikeliest) {
  const at::Tensor greedy = generate(model_, prompts_, {.max_new_tokens = 12, .temperature = 0});
  EXPECT_TRUE(at::equal(generate(model_, prompts_, {.max_new_tokens = 12, .top_k = 1}), greedy));
  EXPECT_TRUE(at::equal(generate(model_, prompts_, {.max_new_tokens = 12, .top_p = 1e-6}), greedy));
  EXPECT_TRUE(
      at::equal(generate(model_, prompts_, {.max_new_tokens = 12, .temperature = 1e-4}), greedy));
}

TEST_P(Generate, TokensComeAsOftenAsTheirProbabilities) {
  const at::Tensor prompt = prompts_.slice(0, 0, 1);
  at::Tensor probabilities;
  {
    const at::NoGradGuard no_grad;
    probabilities = at::softmax(model_(prompt).select(1, -1)[0] / 1.5, -1);
  }
  constexpr int64_t kRows = 2000;
  const auto count = [&](const GenerateOptions& options) {
    const at::Tensor all = generate(model_, prompt.repeat({kRows, 1}), options);
    return at::bincount(all.select(1, -1), {}, 53).to(at::kFloat) / kRows;
  };
  const at::Tensor found = count({.max_new_tokens = 1, .temperature = 1.5, .seed = 4});
  EXPECT_LT((found - probabilities).abs().max().item<float>(), 0.05);
  // The three likeliest, in their proportions.
  const at::Tensor three = count({.max_new_tokens = 1, .temperature = 1.5, .top_k = 3, .seed = 4});
  const auto [best, places] = probabilities.topk(3);
  EXPECT_NEAR(three.index_select(0, places).sum().item<float>(), 1, 1e-6);
  EXPECT_TRUE(at::allclose(three.index_select(0, places), best / best.sum(), 0, 0.05));
  // The fewest that reach half of the probability.
  const at::Tensor half = count({.max_new_tokens = 1, .temperature = 1.5, .top_p = 0.5, .seed = 4});
  const auto [sorted, order] = probabilities.sort(/*dim=*/0, /*descending=*/true);
  const int64_t kept = sorted.cumsum(0).lt(0.5).sum().item<int64_t>() + 1;
  EXPECT_NEAR(half.index_select(0, order.slice(0, 0, kept)).sum().item<float>(), 1, 1e-6);
}

TEST_P(Generate, ARowEndsWithTheStopToken) {
  const at::Tensor greedy = generate(model_, prompts_, {.max_new_tokens = 20, .temperature = 0});
  const auto stop = greedy[0][9].item<int64_t>();
  const at::Tensor stopped =
      generate(model_, prompts_, {.max_new_tokens = 20, .temperature = 0, .stop_token = stop});
  for (int64_t row = 0; row < 2; ++row) {
    bool ended = false;
    for (int64_t i = 6; i < stopped.size(1); ++i) {
      EXPECT_EQ(stopped[row][i].item<int64_t>(), ended ? stop : greedy[row][i].item<int64_t>());
      ended = ended || stopped[row][i].item<int64_t>() == stop;
    }
  }
  const at::Tensor alone = generate(model_,
                                    prompts_.slice(0, 0, 1),
                                    {.max_new_tokens = 20, .temperature = 0, .stop_token = stop});
  EXPECT_LE(alone.size(1), 10);
}

TEST_P(Generate, KeepsTheModeOfTheModel) {
  model_->train();
  const at::Tensor all = generate(model_, prompts_, {.max_new_tokens = 2});
  EXPECT_TRUE(model_->is_training());
  EXPECT_TRUE(model_->blocks->is_training());
  EXPECT_FALSE(all.requires_grad());
  EXPECT_TRUE(at::equal(generate(model_, prompts_, {.max_new_tokens = 0}), prompts_));
}

TEST_P(Generate, RunsInMixedPrecision) {
  const engine::Autocast autocast;
  EXPECT_EQ(generate(model_, prompts_, {.max_new_tokens = 5}).size(1), 11);
}

TEST_P(Generate, RefusesWhatDoesNotFit) {
  const auto refusal = [&](const GenerateOptions& options,
                           const at::Tensor& prompts) -> std::string {
    try {
      (void)generate(model_, prompts, options);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal({.max_new_tokens = -1}, prompts_),
              HasSubstr("max_new_tokens must not be negative"));
  EXPECT_THAT(refusal({.temperature = -1}, prompts_), HasSubstr("temperature must be 0 or more"));
  EXPECT_THAT(refusal({.top_k = -1}, prompts_), HasSubstr("top_k must not be negative"));
  EXPECT_THAT(refusal({.top_p = 0}, prompts_), HasSubstr("top_p must be in (0, 1]"));
  EXPECT_THAT(refusal({}, prompts_[0]), HasSubstr("expected prompts [N, T]"));
  EXPECT_THAT(
      refusal({.max_new_tokens = 35}, prompts_),
      HasSubstr("6 tokens of the prompt and 35 new ones are more than the model's context of 40"));
}

TEST(KeyValueCache, RefusesWhatDoesNotFit) {
  const GptOptions options = gpt_options("gpt:vocab_size=53,layers=1,width=32,heads=4,context=8");
  EXPECT_THROW(KeyValueCache(options, 0), UsageError);
  EXPECT_THROW(KeyValueCache(options, 9), UsageError);
  Gpt model(options);
  KeyValueCache cache(options, 4);
  const at::Tensor tokens = at::ones({2, 3}, at::kLong);
  (void)model->forward_cached(tokens, cache);
  EXPECT_THROW((void)model->forward_cached(tokens, cache), UsageError);
  EXPECT_THROW((void)model->forward_cached(tokens.slice(0, 0, 1).slice(1, 0, 1), cache),
               UsageError);
}

}  // namespace
}  // namespace argosy::text
