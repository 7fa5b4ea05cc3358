/// A Gpt's step on a device, as tests/gpu/run.sh measures it, beside the CPU's; and a Gpt that
/// ranks with a device each divide.
#include "argosy/text/models/gpt.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/even_part.h"
#include "argosy/engine/autocast.h"
#include "argosy/optim/adam.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/parallel/recompute_blocks.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"

#include "tests/support/on_devices.h"

namespace argosy::text {
namespace {

class GptOnDevices : public test::OnDevices {
 protected:
  /// Of some steps from the same weights.
  static std::vector<double> losses_of(const std::string& model,
                                       const at::Device& where,
                                       bool bf16) {
    const GptOptions options = gpt_options(model + ":vocab_size=50,layers=2,width=32,heads=4");
    Gpt gpt(options);
    gpt->initialize(1);
    gpt->to(where);
    auto optimizer = optim::AdamW(gpt, {.lr = 1e-2});
    const at::Tensor tokens = at::arange(2 * 17, at::kLong).remainder(7).view({2, 17}).to(where);
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step) {
      at::Tensor loss;
      {
        std::optional<engine::Autocast> autocast;
        if (bf16) {
          autocast.emplace(engine::AutocastOptions{.device = where.type(), .dtype = at::kBFloat16});
        }
        loss = gpt->loss(tokens.narrow(1, 0, 16), tokens.narrow(1, 1, 16));
      }
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      losses.push_back(loss.item<double>());
    }
    return losses;
  }
};

TEST_P(GptOnDevices, LearnsAsOnTheCpu) {
  for (const std::string model : {"gpt", "llama"}) {
    for (const bool bf16 : {false, is_cuda()}) {  // the stand-in has no autocast
      const std::vector<double> wanted = losses_of(model, at::kCPU, bf16);
      const std::vector<double> got = losses_of(model, device(), bf16);
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(got[i], wanted[i], bf16 ? 0.05 : 1e-3) << model << " step " << i;
      }
      EXPECT_LT(got.back(), got.front() - 0.5) << model;
    }
  }
}

// --- Divided -------------------------------------------------------------------------------------

using Tensors = std::vector<at::Tensor>;

/// A Gpt with its loss, as a wrapper calls it.
struct LossOfGptImpl : torch::nn::Module {
  explicit LossOfGptImpl(const GptOptions& options) {
    gpt = register_module("gpt", Gpt(options));
    gpt->initialize(5);
  }
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& targets) {
    return gpt->loss(tokens, targets);
  }
  Gpt gpt{nullptr};
};
TORCH_MODULE(LossOfGpt);

class DividedGptOnDevices : public GptOnDevices {
 protected:
  /// Two steps of two virtual ranks, whatever the number of ranks. Returns what the optimizer has
  /// updated, and what it keeps.
  [[nodiscard]] Tensors trained(const std::string& kind,
                                const comm::Group& group,
                                parallel::DdpOptions wrapping,
                                bool again) const {
    const at::Device where = device(group.rank());
    LossOfGpt net(gpt_options(kind + ":vocab_size=61,layers=3,width=32,heads=4,context=16"));
    net->to(where);
    wrapping.virtual_ranks = 2;
    parallel::DistributedDataParallel<LossOfGpt> model(net, group, wrapping);
    if (again) {
      parallel::recompute_blocks(*net);
    }
    optim::Optimizer optimizer = optim::AdamW(model, {.lr = 0.01});
    EXPECT_EQ(model.divide_step(optimizer), wrapping.shard.has_value());
    if (wrapping.shard.has_value() && group.size() > 1) {
      EXPECT_GE(model.stats().buckets.size(), 4U) << "a unit for each block";
    }
    const IndexRange leaves = even_part(2, group.size(), group.rank());
    for (int step = 0; step < 2; ++step) {
      for (int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
        model.begin({.leaf = leaf - leaves.begin, .leaves = leaves.size()});
        const at::Tensor tokens =
            (at::arange(34, at::kLong) * (3 + leaf) + step).remainder(61).view({2, 17}).to(where);
        model(tokens.narrow(1, 0, 16), tokens.narrow(1, 1, 16)).backward();
      }
      model.end_update();
      optimizer.step();
      optimizer.zero_grad();
    }
    return parallel::testing::results_of(model, optimizer);
  }
  void expect_same(const Tensors& got, const Tensors& wanted, const std::string& what) const {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    for (size_t i = 0; i < got.size(); ++i) {
      expect_equal(got[i], wanted[i], what + ", result " + std::to_string(i));
    }
  }
};

TEST_P(DividedGptOnDevices, HasTheBitsOfRanksThatHaveEverything) {
  ARGOSY_NEED_DEVICES(2);
  for (const std::string kind : {"gpt", "llama"}) {
    parallel::testing::on_ranks(2, [&](comm::Group& group) {
      const Tensors wanted = trained(kind, group, {}, /*again=*/false);
      for (const bool again : {false, true}) {
        expect_same(trained(kind, group, {.shard = parallel::ShardOptions{.unit_bytes = 0}}, again),
                    wanted,
                    kind + (again ? ", computed again" : ""));
      }
    });
  }
}

/// 16-bit parameters with f32 masters. One rank computes no block again.
TEST_P(DividedGptOnDevices, InPureBfloat16HasTheSameBitsOnAnyNumberOfRanks) {
  ARGOSY_NEED_DEVICES(2);
  const parallel::ShardOptions shard{
      .unit_bytes = 0, .mixed_precision = parallel::MixedPrecision{.reduce_dtype = at::kFloat}};
  for (const std::string kind : {"gpt", "llama"}) {
    Tensors wanted;
    for (const int size : {1, 2}) {
      parallel::testing::on_ranks(size, [&](comm::Group& group) {
        const Tensors got = trained(kind, group, {.shard = shard}, /*again=*/size > 1);
        if (group.rank() == 0) {
          wanted = size == 1 ? got : wanted;
          expect_same(got, wanted, kind);
        }
      });
    }
  }
}

ARGOSY_ON_DEVICES(GptOnDevices);
ARGOSY_ON_DEVICES(DividedGptOnDevices);

}  // namespace
}  // namespace argosy::text
