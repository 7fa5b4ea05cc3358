/// A Gpt whose parameters ranks divide.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/even_part.h"
#include "argosy/engine/deferred.h"
#include "argosy/optim/adam.h"
#include "argosy/parallel/ddp/divided_step_test_support.h"
#include "argosy/parallel/recompute.h"
#include "argosy/parallel/recompute_blocks.h"
#include "argosy/parallel/sharded/fully_shard.h"
#include "argosy/text/models/gpt.h"

namespace argosy::text {
namespace {

/// A Gpt with its loss, as a wrapper calls it.
struct LossOfGptImpl : torch::nn::Module {
  explicit LossOfGptImpl(const GptOptions& options) {
    gpt = register_module("gpt", Gpt(options));
    gpt->initialize(5);  // of a deferred model: later
  }
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& targets) {
    return gpt->loss(tokens, targets);
  }
  Gpt gpt{nullptr};
};
TORCH_MODULE(LossOfGpt);

using Wrapped = parallel::DistributedDataParallel<LossOfGpt>;

void train(Wrapped& model, optim::Optimizer& optimizer, const comm::Group& group) {
  for (int step = 0; step < 3; ++step) {
    const at::Tensor tokens =
        (at::arange(34, at::kLong) * (3 + group.rank()) + step).remainder(61).view({2, 17});
    model(tokens.narrow(1, 0, 16), tokens.narrow(1, 1, 16)).backward();
    optimizer.step();
    optimizer.zero_grad();
  }
}

TEST(GptSharded, HasTheBitsOfRanksThatHaveEverything) {
  for (const char* const kind : {"gpt", "llama"}) {
    for (const auto& [autocast, again] : {std::pair(false, false), {true, false}, {false, true}}) {
      parallel::testing::on_ranks(2, [&, autocast = autocast, again = again](comm::Group& group) {
        const GptOptions options =
            gpt_options(std::string(kind) + ":vocab_size=61,layers=3,width=64,heads=4,context=16");
        parallel::DdpOptions wrapping{.shared_memory = false};
        if (autocast) {
          wrapping.autocast = at::kBFloat16;
        }
        LossOfGpt net(options);
        Wrapped plain(net, group, wrapping);
        wrapping.shard = parallel::ShardOptions{.unit_bytes = 0};
        auto other = engine::deferred<LossOfGpt>(options);
        if (again) {
          other->gpt->set_block_runner([](const GptBlock& block, const at::Tensor& x) {
            return parallel::recompute(block, x);
          });
        }
        Wrapped sharded = parallel::fully_shard(other, group, wrapping);
        EXPECT_GE(sharded.stats().buckets.size(), 4U);
        optim::Optimizer a = optim::AdamW(plain, {.lr = 1e-2});
        optim::Optimizer b = optim::AdamW(sharded, {.lr = 1e-2});
        (void)sharded.divide_step(b);
        train(plain, a, group);
        train(sharded, b, group);
        for (size_t i = 0; i < plain.parameters().size(); ++i) {
          parallel::testing::expect_same_bits(
              sharded.parameters()[i], plain.parameters()[i], kind + std::to_string(i));
        }
      });
    }
  }
}

/// 16-bit parameters with f32 masters, and blocks that are computed again.
TEST(GptSharded, InPureBfloat16HasTheSameBitsOnAnyNumberOfProcesses) {
  for (const char* const kind : {"gpt", "llama"}) {
    std::vector<at::Tensor> expected;
    for (const int size : {1, 2, 3}) {
      parallel::testing::on_ranks(size, [&](comm::Group& group) {
        LossOfGpt net(
            gpt_options(std::string(kind) + ":vocab_size=61,layers=3,width=32,heads=4,context=16"));
        parallel::DdpOptions wrapping{
            .shard =
                parallel::ShardOptions{
                    .unit_bytes = 0,
                    .mixed_precision = parallel::MixedPrecision{.reduce_dtype = at::kFloat}},
            .virtual_ranks = 2};
        Wrapped model(net, group, wrapping);
        if (size > 1) {
          parallel::recompute_blocks(*net);
        }
        optim::Optimizer optimizer = optim::AdamW(model, {.lr = 0.01});
        ASSERT_TRUE(model.divide_step(optimizer));
        const IndexRange leaves = even_part(2, size, group.rank());
        for (int step = 0; step < 3; ++step) {
          for (int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
            model.begin({.leaf = leaf - leaves.begin, .leaves = leaves.size()});
            const at::Tensor tokens =
                (at::arange(34, at::kLong) * (3 + leaf) + step).remainder(61).view({2, 17});
            model(tokens.narrow(1, 0, 16), tokens.narrow(1, 1, 16)).backward();
          }
          model.end_update();
          optimizer.step();
          optimizer.zero_grad();
        }
        std::vector<at::Tensor> mine;
        for (const auto& [name, entry] : optimizer.state_dict().parameters) {
          mine.push_back(entry.at("master").clone());
        }
        if (group.rank() == 0) {
          expected = expected.empty() ? mine : expected;
          for (size_t i = 0; i < mine.size(); ++i) {
            parallel::testing::expect_same_bits(mine[i], expected[i], kind);
          }
        }
      });
    }
  }
}

TEST(GptSharded, ADeferredModelDrawsItsWeightsWhenTheyAreNeeded) {
  for (const char* const kind : {"gpt", "llama"}) {
    const GptOptions options =
        gpt_options(std::string(kind) + ":vocab_size=61,layers=2,width=64,heads=4,context=16");
    Gpt plain(options);
    plain->initialize(8);
    Gpt late = engine::deferred<Gpt>(options);
    late->initialize(8);
    int64_t deferred = 0;
    for (const auto& item : late->named_parameters()) {
      const at::Tensor& parameter = item.value();
      EXPECT_EQ(engine::is_deferred(parameter), parameter.nbytes() >= 4096) << item.key();
      if (engine::is_deferred(parameter)) {
        deferred += parameter.numel();
        const int64_t rows = parameter.size(0) / 2;
        const at::Tensor part = at::empty({(parameter.size(0) - rows) * parameter.size(1)});
        engine::draw_part(parameter, part, {rows * parameter.size(1), parameter.numel()});
        parallel::testing::expect_same_bits(
            part, plain->named_parameters()[item.key()].slice(0, rows).reshape(-1), item.key());
      }
    }
    EXPECT_GT(deferred, options.parameters() * 9 / 10);
    const at::Tensor tokens = at::arange(16, at::kLong).view({1, 16});
    parallel::testing::expect_same_bits(late(tokens), plain(tokens), "logits");
    EXPECT_FALSE(engine::is_deferred(late->named_parameters()["embed.weight"]));
    parallel::testing::expect_same_bits(engine::deferred<Gpt>(options)->loss(tokens, tokens),
                                        Gpt(options)->loss(tokens, tokens),
                                        "");
  }
}

}  // namespace
}  // namespace argosy::text
