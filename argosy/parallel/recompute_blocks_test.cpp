// Blocks that are computed again without a change of the model, and results that are kept.
#include "argosy/parallel/recompute_blocks.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/attention.h"
#include "argosy/engine/block_calls.h"

#include "tests/support/error_text.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;

/// Counts how often it was computed, by the name of each.
std::map<std::string, int> computed;

struct CountedImpl : torch::nn::Module {
  explicit CountedImpl(std::string called) : called(std::move(called)) {
    register_module("fc", fc);
    register_module("dropout", dropout);
  }
  at::Tensor forward(const at::Tensor& x) {
    ++computed[called];
    return x + dropout(fc(x).tanh());
  }
  std::string called;
  torch::nn::Linear fc{6, 6};
  torch::nn::Dropout dropout{0.4};
};
TORCH_MODULE(Counted);

/// A Sequential among other things.
struct WithSequenceImpl : torch::nn::Module {
  WithSequenceImpl() {
    in = register_module("in", torch::nn::Linear(6, 6));
    layers =
        register_module("layers", torch::nn::Sequential(Counted("0"), Counted("1"), Counted("2")));
    list = register_module("list", torch::nn::ModuleList(Counted("list")));
  }
  at::Tensor forward(const at::Tensor& x) {
    return list->ptr<CountedImpl>(0)->forward(layers->forward(in(x)));
  }
  torch::nn::Linear in{nullptr};
  torch::nn::Sequential layers{nullptr};
  torch::nn::ModuleList list{nullptr};
};
TORCH_MODULE(WithSequence);

/// A model of a user that lets others call its blocks.
struct CallerImpl : torch::nn::Module, engine::BlockCalls {
  CallerImpl() {
    blocks = register_module("blocks", torch::nn::ModuleList(Counted("a"), Counted("b")));
  }
  at::Tensor forward(at::Tensor x) {
    for (const auto& block : *blocks) {
      const engine::BlockCalls::Call call = [block](const at::Tensor& y) {
        return block->as<CountedImpl>()->forward(y);
      };
      x = run ? run(*block, call, x) : call(x);
    }
    return x;
  }
  void run_blocks_by(engine::BlockCalls::Runner runner) override { run = std::move(runner); }
  [[nodiscard]] std::vector<std::shared_ptr<torch::nn::Module>> called_blocks() const override {
    return blocks->children();
  }
  torch::nn::ModuleList blocks{nullptr};
  engine::BlockCalls::Runner run{};
};
TORCH_MODULE(Caller);

/// Gradients after a pass, and what it left of the generator.
template <typename Model>
std::vector<at::Tensor> pass_of(Model model) {
  computed.clear();
  torch::manual_seed(11);
  model->forward(torch::randn({3, 6})).square().sum().backward();
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : model->parameters()) {
    all.push_back(parameter.grad());
  }
  all.push_back(torch::rand({3}));
  return all;
}

template <typename Model>
void expect_bits(const std::vector<std::string>& names,
                 const std::map<std::string, int>& times,
                 const RecomputeOptions& options = {}) {
  torch::manual_seed(3);
  Model plain;
  torch::manual_seed(3);
  Model again;
  recompute_blocks(*again, names, options);
  const auto wanted = pass_of(plain);
  const auto got = pass_of(again);
  EXPECT_EQ(computed, times);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i].equal(wanted[i])) << i;
  }
  for (size_t i = 0; i < plain->named_parameters().size(); ++i) {
    EXPECT_EQ(again->named_parameters()[i].key(), plain->named_parameters()[i].key());
  }
}

TEST(RecomputeBlocks, AreTheChildrenOfASequential) {
  expect_bits<WithSequence>({}, {{"0", 2}, {"1", 2}, {"2", 2}, {"list", 1}});
  expect_bits<WithSequence>({"layers.[02]"}, {{"0", 2}, {"1", 1}, {"2", 2}, {"list", 1}});
  expect_bits<WithSequence>({"layers.1", "*.1"}, {{"0", 1}, {"1", 2}, {"2", 1}, {"list", 1}});
}

TEST(RecomputeBlocks, OrThoseOfAModuleThatLetsOthersCallThem) {
  expect_bits<Caller>({}, {{"a", 2}, {"b", 2}});
  expect_bits<Caller>({"blocks.1"}, {{"a", 1}, {"b", 2}});
}

TEST(RecomputeBlocks, SayWhatNothingCanComeBetween) {
  WithSequence model;
  EXPECT_THAT(test::error_text<UsageError>([&] { recompute_blocks(*model, {"list.0"}); }),
              ::testing::AllOf(HasSubstr("\"list.0\" is no block that can be computed again"),
                               HasSubstr("here: layers.0, layers.1, layers.2")));
  EXPECT_THAT(test::error_text<UsageError>([&] { recompute_blocks(*torch::nn::Linear(2, 2)); }),
              HasSubstr("the model has no blocks"));
  recompute_blocks(*model);
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)model->layers->clone(); }),
              HasSubstr("cannot be cloned"));
}

/// Calls products whose results are written to afterwards, and a view of a result.
at::Tensor messy(const at::Tensor& x, const at::Tensor& w) {
  at::Tensor y = x.mm(w);
  y = y.add_(1).relu();
  const at::Tensor z = y.mm(w.t()).sin();
  return at::dropout(z.t().mm(w).exp(), 0.5, true);
}

TEST(RecomputePolicy, KeepsWhatItSays) {
  const at::Tensor x = torch::randn({5, 5}, at::kDouble).requires_grad_();
  const at::Tensor w = torch::randn({5, 5}, at::kDouble).mul(0.1).requires_grad_();
  const auto grads = [&](const std::function<at::Tensor()>& forward) {
    x.mutable_grad() = w.mutable_grad() = at::Tensor();
    torch::manual_seed(5);
    const at::Tensor y = forward();
    y.sum().backward();
    return std::vector<at::Tensor>{y.detach(), x.grad(), w.grad(), torch::rand({2})};
  };
  const auto wanted = grads([&] { return messy(x, w); });
  for (const std::vector<std::string>& names : {std::vector<std::string>{},
                                                {"aten::mm"},
                                                {"aten::sin", "aten::mm", "aten::exp"},
                                                {"aten::dropout",
                                                 "aten::bernoulli_",
                                                 "aten::mul",
                                                 "aten::native_dropout",
                                                 "aten::t",
                                                 "aten::add_",
                                                 "aten::empty_like"}}) {
    const auto got =
        grads([&] { return recompute(RecomputeOptions{.policy = must_save(names)}, messy, x, w); });
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(got[i].equal(wanted[i])) << i << " with " << names.size() << " kept";
    }
  }
}

/// A result that is kept has the memory of the first computation.
TEST(RecomputePolicy, ComputesTheRestOnly) {
  int64_t asked = 0;
  const auto sines = [&](const RecomputeOptions& options) {
    torch::nn::Linear layer(4, 4);
    std::vector<at::Tensor> results;
    const auto block = [&](const at::Tensor& x) {
      at::Tensor y = layer(x).sin().cos();
      results.push_back(y);
      return y;
    };
    const at::Tensor y = recompute(options, block, torch::ones({2, 4}));
    y.sum().backward();
    EXPECT_EQ(results.size(), 2U);
    return results[0].data_ptr() == results[1].data_ptr();
  };
  EXPECT_FALSE(sines({}));
  EXPECT_TRUE(sines({.policy = [&](const std::string& name) {
    ++asked;
    return name == "aten::cos" ? CheckpointPolicy::kPreferSave : CheckpointPolicy::kMustRecompute;
  }}));
  EXPECT_GT(asked, 0);
  EXPECT_FALSE(sines({.policy = must_save({"aten::sin"})})) << "cos is computed again";
}

CheckpointPolicy everything(const std::string& /*name*/) {
  return CheckpointPolicy::kMustSave;
}

/// Gradient of a block that is computed again, or not, after the same seed.
at::Tensor gradient_through(const std::function<at::Tensor(const at::Tensor&)>& block, bool again) {
  const at::Tensor x = torch::linspace(-1, 1, 16).view({4, 4}).requires_grad_();
  torch::manual_seed(5);
  const at::Tensor y =
      again ? recompute(RecomputeOptions{.policy = everything}, block, x) : block(x);
  y.sum().backward();
  return x.grad();
}

TEST(RecomputePolicy, DrawsAgainWhateverItSays) {
  const auto noisy = [](const at::Tensor& x) {
    return (x.sin() * torch::rand_like(x) + torch::randn({4, 4})) * torch::bernoulli(x.sigmoid()) *
           torch::dropout(x, 0.5, true);
  };
  EXPECT_TRUE(gradient_through(noisy, true).equal(gradient_through(noisy, false)));
}

/// Dropout inside of an attention: of libtorch's layer, and of the fused operator where there is
/// one.
TEST(RecomputePolicy, DrawsAgainInAttention) {
  torch::manual_seed(3);
  torch::nn::TransformerEncoderLayer layer(
      torch::nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).dropout(0.3));
  const auto attends = [&](const at::Tensor& x) {
    at::Tensor y = layer(x.view({4, 1, 4}));
    if (engine::has_fused_attention()) {
      const at::Tensor heads = y.view({1, 1, 4, 4});
      y = y + engine::fused_causal_attention(heads, heads, heads, 0.3).view({4, 1, 4});
    }
    return y.sin();
  };
  const at::Tensor wanted = gradient_through(attends, false);
  EXPECT_TRUE(gradient_through(attends, true).equal(wanted));
  layer->eval();
  EXPECT_FALSE(gradient_through(attends, false).equal(wanted)) << "nothing was dropped";
}

TEST(RecomputePolicy, TakesNoResultOfOtherArguments) {
  int calls = 0;
  const auto changing = [&](const at::Tensor& x) {
    if (++calls == 1) {
      const torch::NoGradGuard no_grad;
      (void)x.narrow(0, 0, 1).mm(x);
    }
    return x.mm(x).sin();
  };
  const at::Tensor got = gradient_through(changing, true);
  EXPECT_TRUE(got.equal(gradient_through(changing, false)));
}

/// Also of what nobody asked for again.
TEST(RecomputePolicy, LetsGoOfWhatItKeptWithTheGraph) {
  at::Tensor extra;
  const at::Tensor x = torch::ones({4}).requires_grad_();
  const at::Tensor y = recompute(
      RecomputeOptions{.policy = everything},
      [&](const at::Tensor& given) {
        extra = extra.defined() ? extra : given.cos().detach();
        return given.sin();
      },
      x);
  EXPECT_GT(extra.storage().use_count(), 1U);
  y.sum().backward();
  EXPECT_EQ(extra.storage().use_count(), 1U);
}

}  // namespace
}  // namespace argosy::parallel
