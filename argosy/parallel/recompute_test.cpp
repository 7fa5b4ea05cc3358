#include "argosy/parallel/recompute.h"

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/used_tensors.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"
#include "argosy/vision/models/resnet.h"

namespace argosy::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Kept = c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>;

/// Dropout, a norm with statistics, and a count of how often it was computed.
struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    register_module("fc", fc);
    register_module("norm", norm);
    register_module("dropout", dropout);
  }
  at::Tensor forward(const at::Tensor& x) {
    ++computed;
    const at::Tensor hidden = fc(x);
    activation = Kept(hidden.getIntrusivePtr());
    return x + dropout(torch::relu(norm(hidden)));
  }
  torch::nn::Linear fc{8, 8};
  torch::nn::BatchNorm1d norm{8};
  torch::nn::Dropout dropout{0.4};
  int computed = 0;
  Kept activation{c10::intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>()};
};
TORCH_MODULE(Block);

std::vector<Block> three_blocks() {
  torch::manual_seed(3);
  return {Block(), Block(), Block()};
}

/// The bits of everything that a pass leaves behind.
std::vector<at::Tensor> traces(const std::vector<Block>& blocks, const at::Tensor& input) {
  std::vector<at::Tensor> all{input.grad()};
  for (const Block& block : blocks) {
    for (const at::Tensor& parameter : block->parameters()) {
      all.push_back(parameter.grad());
    }
    for (const at::Tensor& buffer : block->buffers()) {
      all.push_back(buffer);
    }
  }
  all.push_back(torch::rand({4}));  // where the generator stands
  return all;
}

using Forward = std::function<at::Tensor(std::vector<Block>&, const at::Tensor&)>;

std::vector<at::Tensor> train(const Forward& forward, bool input_learns = true) {
  std::vector<Block> blocks = three_blocks();
  const at::Tensor input = torch::randn({5, 8}).requires_grad_(input_learns);
  for (int pass = 0; pass < 2; ++pass) {
    forward(blocks, input).square().sum().backward();
  }
  return traces(blocks, input);
}

void expect_same(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), wanted[i].defined()) << i;
    EXPECT_TRUE(!got[i].defined() || got[i].equal(wanted[i])) << i;
  }
}

at::Tensor plain(std::vector<Block>& blocks, const at::Tensor& input) {
  at::Tensor x = input;
  for (Block& block : blocks) {
    x = block(x);
  }
  return x;
}

at::Tensor each_again(std::vector<Block>& blocks, const at::Tensor& input) {
  at::Tensor x = input;
  for (Block& block : blocks) {
    x = recompute(block, x);
  }
  return x;
}

TEST(Recompute, HasTheBitsOfAPlainPass) {
  for (const bool input_learns : {true, false}) {
    const auto wanted = train(plain, input_learns);
    expect_same(train(each_again, input_learns), wanted);
    expect_same(train(
                    [](std::vector<Block>& blocks, const at::Tensor& input) {
                      return recompute(  // nested, by a function
                          [&blocks](const at::Tensor& x) { return each_again(blocks, x); },
                          input);
                    },
                    input_learns),
                wanted);
  }
}

TEST(Recompute, KeepsNothingAndComputesAgainWhenBackwardComesToIt) {
  std::vector<Block> blocks = three_blocks();
  const at::Tensor kept = plain(blocks, torch::randn({5, 8}));
  EXPECT_FALSE(blocks[0]->activation.expired());
  at::Tensor x = torch::randn({5, 8});
  const at::Tensor first = recompute(blocks[0], x);
  EXPECT_TRUE(blocks[0]->activation.expired());
  at::Tensor second = recompute(blocks[1], first);
  const Kept between(second.getIntrusivePtr());
  const at::Tensor loss = recompute(blocks[2], std::exchange(second, {})).sum();
  EXPECT_FALSE(between.expired());
  EXPECT_EQ(blocks[2]->computed, 2);
  loss.backward();
  EXPECT_EQ(blocks[2]->computed, 3);
  EXPECT_TRUE(between.expired()) << "although the loss still has its graph";
  {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(each_again(blocks, torch::randn({5, 8})).requires_grad());
  }
  EXPECT_EQ(blocks[2]->computed, 4);
}

/// Operators of one's own, which write statistics themselves.
TEST(Recompute, OfAModelWithFusedNorms) {
  std::vector<std::vector<at::Tensor>> all;
  for (const bool again : {false, true}) {
    torch::manual_seed(4);
    vision::ResNet net = vision::resnet18({.num_classes = 4});
    const at::Tensor images =
        torch::randn({2, 3, 32, 32}).contiguous(at::MemoryFormat::ChannelsLast);
    for (int pass = 0; pass < 2; ++pass) {
      (again ? recompute(net, images) : net(images)).square().sum().backward();
    }
    std::vector<at::Tensor>& traces = all.emplace_back();
    for (const at::Tensor& parameter : net->parameters()) {
      traces.push_back(parameter.grad());
    }
    for (const at::Tensor& buffer : net->buffers()) {
      traces.push_back(buffer);
    }
  }
  expect_same(all[1], all[0]);
}

TEST(Recompute, KeepsMixedPrecision) {
  const auto under = [](const Forward& forward) {
    return Forward([forward](std::vector<Block>& blocks, const at::Tensor& input) {
      const engine::Autocast autocast;
      return forward(blocks, input);
    });
  };
  expect_same(train(under(each_again)), train(under(plain)));
  // A weight that was cast without a graph is not what a plain use gets afterwards.
  expect_same(train(under([](std::vector<Block>& blocks, const at::Tensor& input) {
                return blocks[0](recompute(blocks[0], input));
              })),
              train(under([](std::vector<Block>& blocks, const at::Tensor& input) {
                return blocks[0](blocks[0](input));
              })));
}

/// Two products behind an operator that cannot be late. The results that the second computation
/// had are in `seen`.
struct Products {
  at::Tensor a = torch::randn({4, 4}).requires_grad_();
  at::Tensor b = torch::randn({4, 4}).requires_grad_();
  std::vector<at::Tensor> seen{};
  std::vector<bool> had_memory{};  // while backward came to x
  at::Tensor last_input{};
  std::function<void(const at::Tensor& hidden)> before_end = [](const at::Tensor&) {};

  at::Tensor operator()(const at::Tensor& x) {
    const at::Tensor hidden = x.sin();
    const at::Tensor first = hidden.mm(a);
    before_end(hidden);
    at::Tensor last = x + first.mm(b);
    seen = {first, last};
    last_input = x;
    if (hidden.requires_grad()) {
      hidden.register_hook([this](const at::Tensor&) {
        had_memory.clear();
        for (const at::Tensor& tensor : seen) {
          had_memory.push_back(tensor.storage().data() != nullptr);
        }
      });
    }
    return last;
  }
  /// Gradients of x, a and b.
  std::vector<at::Tensor> gradients(const RecomputeOptions& options) {
    const at::Tensor x = torch::linspace(-1, 1, 16).view({4, 4}).requires_grad_();
    const at::Tensor y = recompute(
        options, [this](const at::Tensor& given) { return (*this)(given); }, x);
    return torch::autograd::grad({y.square().sum()}, {x, a, b});
  }
};

TEST(Recompute, StopsBeforeTheLastProduct) {
  Products late;
  const std::vector<at::Tensor> got = late.gradients({});
  EXPECT_THAT(late.had_memory, ElementsAre(true, false)) << "the gradient of b needs the first";
  Products all = late;
  expect_same(got, all.gradients({.early_stop = false}));
  EXPECT_THAT(all.had_memory, ElementsAre(true, true));
  EXPECT_TRUE(late.seen[1].equal(all.seen[1])) << "who still holds it has its values";
  Products kept = late;
  expect_same(kept.gradients({.policy = must_save({"aten::mm"})}), got);
  EXPECT_THAT(kept.had_memory, ElementsAre(true, false)) << "what was kept is no obstacle";
}

/// What a step changes afterwards has no effect on them.
TEST(Recompute, LateResultsThatAreHeldAreComputedBeforeAStep) {
  Products products;
  (void)products.gradients({});
  const at::Tensor wanted = products.last_input + products.seen[0].mm(products.b);
  {
    const torch::NoGradGuard no_grad;
    products.b.zero_();
  }
  EXPECT_TRUE(products.seen[1].equal(wanted));
}

/// Late results have what they would have had.
TEST(Recompute, ComputesLateResultsBeforeWhatWasNotForeseen) {
  Products products;
  int calls = 0;
  at::Tensor early;
  products.before_end = [&](const at::Tensor& hidden) {
    if (++calls == 2) {
      early = hidden.detach().clone();
      hidden.data().zero_();
    }
  };
  (void)products.gradients({});
  EXPECT_TRUE(products.seen[0].equal(early.mm(products.a)));
}

/// A kernel of one's own reads a product's result, in a computation that is hidden from the outer
/// one.
TEST(Recompute, BringsLateResultsToOneWithin) {
  const at::Tensor w = torch::randn({4, 4}).requires_grad_();
  const at::Tensor x = torch::randn({4, 4}).requires_grad_();
  float read = 0;
  const auto within = [&](const at::Tensor& y) {
    read = *static_cast<const float*>(y.data_ptr());
    return y.mm(w);
  };
  const auto both = [&](const at::Tensor& y) {
    return recompute({.preserve_rng_state = false}, within, y.mm(w));  // no operator of its own
  };
  recompute(both, x).sum().backward();
  EXPECT_EQ(read, x.mm(w)[0][0].item<float>());
}

/// The same product in the middle, whose result a kernel of one's own reads.
TEST(Recompute, OnlyTheLastProductsAreLate) {
  const at::Tensor w = torch::randn({4, 4}).requires_grad_();
  const at::Tensor x = torch::randn({4, 4}).requires_grad_();
  std::vector<float> read;
  const auto function = [&](const at::Tensor& y) {
    const at::Tensor middle = y.sin().mm(w);
    read.push_back(*static_cast<const float*>(middle.data_ptr()));
    return middle.cos().mm(w);
  };
  recompute(function, x).sum().backward();
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0], read[1]);
}

/// Several results, one of them an index, in a tuple; an argument that is no tensor.
TEST(Recompute, TakesAndReturnsManyThings) {
  const at::Tensor a = torch::randn({4, 3}).requires_grad_(), b = torch::randn({4, 3});
  const at::Tensor parameter = torch::randn({3}).requires_grad_();
  const at::Tensor outside = parameter.exp();  // which its own graph goes on from
  const auto function =
      [&](const std::vector<at::Tensor>& both, const at::Tensor& c, double factor) {
        const at::Tensor sum = both[0] * factor + both[1] * c * parameter + a;
        return std::make_tuple(sum, std::get<1>(sum.max(1)), sum.sin());
      };
  const auto gradients = [&](auto&& results) {
    const auto& [sum, index, sine] = results;
    EXPECT_FALSE(index.requires_grad());
    return torch::autograd::grad(
        {(sum * 3).sum() + sine.sum()}, {a, parameter}, {}, /*retain_graph=*/true);
  };
  const std::vector<at::Tensor> both{a, b};
  const std::vector<at::Tensor> got = gradients(recompute(function, both, outside, 0.5));
  const std::vector<at::Tensor> wanted = gradients(function(both, outside, 0.5));
  for (size_t i = 0; i < wanted.size(); ++i) {  // sums of several parts, in another order
    EXPECT_TRUE(got[i].allclose(wanted[i])) << i << got[i] << wanted[i];
  }
  EXPECT_FALSE(a.grad().defined()) << "grad() writes none";
}

/// A buffer that is read too: the second computation begins with what it was.
TEST(Recompute, BeginsWithTheBuffersOfTheFirst) {
  const at::Tensor x = torch::randn({4}).requires_grad_();
  const at::Tensor count = torch::zeros({});
  const auto function = [&](const at::Tensor& y) {
    count.add_(1);
    return y * count.mul(1) + y.sin() * count;
  };
  for (const bool again : {false, true}) {
    count.zero_();
    const at::Tensor first = again ? recompute(function, x) : function(x);
    const at::Tensor second = again ? recompute(function, x) : first.mul(0) + 2 * x + 2 * x.sin();
    const auto gradient = torch::autograd::grad({first.sum() + second.sum()}, {x});
    EXPECT_TRUE(gradient[0].allclose(3 + 3 * x.cos())) << gradient[0];
    EXPECT_EQ(count.item<float>(), again ? 2 : 1);
  }
}

TEST(Recompute, OfASequenceKeepsTheLastSegment) {
  for (const int64_t segments : {1, 2, 3}) {
    int kept = 0;
    const auto in_segments = [&](std::vector<Block>& blocks, const at::Tensor& input) {
      const torch::nn::Sequential all(blocks[0], blocks[1], blocks[2]);
      at::Tensor out = recompute_sequential({.segments = segments}, all, input);
      out.sum().backward(/*gradient=*/{}, /*retain_graph=*/true);
      kept = 0;
      for (const Block& block : blocks) {
        kept += block->computed == 1 ? 1 : 0;
      }
      return out;
    };
    std::vector<Block> blocks = three_blocks();
    (void)in_segments(blocks, torch::randn({5, 8}));
    EXPECT_EQ(kept, segments == 3 ? 1 : segments == 2 ? 2 : 3);
    expect_same(train([&](std::vector<Block>& each, const at::Tensor& input) {
                  const torch::nn::Sequential all(each[0], each[1], each[2]);
                  return recompute_sequential({.segments = segments}, all, input);
                }),
                train(plain));
  }
  const torch::nn::Sequential two{Block(), Block()};
  EXPECT_THAT(test::error_text<UsageError>([&] {
                (void)recompute_sequential({.segments = 3}, two, torch::randn({5, 8}));
              }),
              HasSubstr("segments: expected 1 to the number of modules (2), got 3"));
}

TEST(Recompute, SaysWhatItCannotDo) {
  int calls = 0;
  const at::Tensor x = torch::randn({4}).requires_grad_();
  const auto changes = [&](const at::Tensor& y) { return y.repeat(++calls).sin(); };
  EXPECT_THAT(test::error_text<UsageError>([&] { recompute(changes, x).sum().backward(); }),
              HasSubstr("output 0 was [4] Float at first, and is [8] Float when"));
  const at::Tensor late = torch::randn({4}).requires_grad_();
  calls = 0;
  const auto uses_more = [&](const at::Tensor& y) { return ++calls == 1 ? y.sin() : y * late; };
  EXPECT_THAT(test::error_text<UsageError>([&] { recompute(uses_more, x).sum().backward(); }),
              HasSubstr("a parameter [4] Float was used that the first computation did not use"));
  EXPECT_THAT(test::error_text<UsageError>(
                  [&] { (void)recompute([](at::Tensor y) { return y.relu_().exp(); }, x.mul(2)); }),
              HasSubstr("the function writes into tensor 0 of its arguments, [4] Float"));
  EXPECT_THAT(
      test::error_text<UsageError>([&] {
        const at::Tensor outside = x.mul(2);
        (void)recompute([&](const at::Tensor& y) { return y * outside; }, x);
      }),
      HasSubstr("uses a tensor that was computed outside and requires a gradient, [4] Float"));
  EXPECT_THAT(test::error_text<UsageError>([&] {
                (void)recompute([&](const at::Tensor& y) { return y * late.mul_(2); }, x);
              }),
              HasSubstr("writes into a tensor that requires a gradient, [4] Float"));
  calls = 0;
  const auto draws_more = [&](const at::Tensor& y) { return y * torch::rand({++calls}).sum(); };
  EXPECT_THAT(test::error_text<UsageError>([&] { recompute(draws_more, x).sum().backward(); }),
              HasSubstr("other random numbers were drawn than at first"));
  const auto square = [](const at::Tensor& y) { return y * y; };
  EXPECT_THAT(test::error_text<UsageError>([&] {
                (void)torch::autograd::grad(
                    {recompute(square, x).sum()}, {x}, {}, c10::nullopt, /*create_graph=*/true);
              }),
              HasSubstr("a second derivative through recompute() is not there"));
}

struct TwoBlocksImpl : torch::nn::Module {
  explicit TwoBlocksImpl(bool again) : again(again) {
    register_module("first", first);
    register_module("second", second);
  }
  at::Tensor forward(const at::Tensor& x) {
    return again ? recompute(second, recompute(first, x)) : second(first(x));
  }
  bool again;
  Block first, second;
};
TORCH_MODULE(TwoBlocks);

TEST(Recompute, WorksInsideOfDistributedDataParallel) {
  for (const bool unused : {false, true}) {
    std::vector<std::vector<at::Tensor>> gradients;
    for (const bool again : {false, true}) {
      std::vector<at::Tensor> of_rank_0;
      comm::testing::with_threads(2, [&](comm::Group& group) {
        TwoBlocks net(again);
        for (const at::Tensor& parameter : net->parameters()) {
          const torch::NoGradGuard no_grad;
          parameter.copy_(at::arange(parameter.numel()).view_as(parameter).remainder(5).mul(0.1));
        }
        net->first->dropout->options.p(0);  // threads share one generator
        net->second->dropout->options.p(0);
        DistributedDataParallel<TwoBlocks> model(
            net, group, {.first_bucket_bytes = 64, .find_unused_parameters = unused});
        for (int pass = 0; pass < 3; ++pass) {
          const at::Tensor input =
              at::arange(40).view({5, 8}).remainder(7).mul(0.1 * (1 + group.rank() + pass));
          model(input).square().sum().backward();
        }
        if (group.rank() == 0) {
          for (const at::Tensor& parameter : net->parameters()) {
            of_rank_0.push_back(parameter.grad().clone());
          }
        }
      });
      gradients.push_back(of_rank_0);
    }
    expect_same(gradients[1], gradients[0]);
  }
}

}  // namespace
}  // namespace argosy::parallel
