/// Ranks that divide state, gradients and parameters on devices beside the CPU, and blocks that are
/// computed again: what comes out is what data parallelism computes on the CPU.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/even_part.h"
#include "argosy/parallel/recompute_blocks.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"
#include "argosy/parallel/sharded/group_sharded.h"

#include "tests/support/on_devices.h"

namespace argosy::parallel {
namespace {

using testing::on_ranks;
using testing::values;
using Tensors = std::vector<at::Tensor>;

/// Layers in a list, of operators that the second device has.
struct BlocksImpl : torch::nn::Module {
  BlocksImpl() {
    in = register_module("in", torch::nn::Linear(3, 24));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < 4; ++i) {
      blocks->push_back(torch::nn::Linear(24, 24));
    }
    out = register_module("out", torch::nn::Linear(24, 2));
    testing::fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor hidden = in(x);
    for (const auto& block : *blocks) {
      hidden = hidden + block->as<torch::nn::Linear>()->forward(hidden).tanh();
    }
    return out(hidden);
  }
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::ModuleList blocks{nullptr};
};
TORCH_MODULE(Blocks);
using Wrapper = DistributedDataParallel<Blocks>;

optim::Optimizer clipped(const auto& model) {
  return optim::AdamW(model, {.lr = 0.03, .grad_clip = optim::ClipGradByGlobalNorm(0.1)});
}

class ShardedOnDevices : public test::OnDevices {
 protected:
  void expect_same(const Tensors& got, const Tensors& wanted) const {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      expect_equal(got[i], wanted[i], "result " + std::to_string(i));
    }
  }
};

/// Parameters and the optimizer's state after some updates, two of two passes.
Tensors after_training(Wrapper& model,
                       optim::Optimizer& optimizer,
                       const comm::Group& group,
                       at::Device device) {
  for (int step = 0; step < 4; ++step) {
    const at::Tensor x = values({4, 3}, group.rank() + 10.0 * step, at::kFloat).to(device);
    if (step % 2 == 1) {
      const NoSync local = model.no_sync();
      model(x + 1).square().mean().backward();
    }
    model(x).square().mean().backward();
    optimizer.step();
    optimizer.zero_grad({.set_to_none = step != 1});
  }
  return parallel::testing::results_of(model, optimizer);
}

TEST_P(ShardedOnDevices, AllStagesTrain) {
  ARGOSY_NEED_DEVICES(3);
  for (const char* const level : {"os", "os_g", "p_g_os"}) {
    on_ranks(3, [&](comm::Group& group) {
      Wrapper plain(Blocks(), group, {.shared_memory = false});
      optim::Optimizer same = clipped(plain);
      const Tensors wanted = after_training(plain, same, group, at::kCPU);
      Blocks net;
      net->to(device(group.rank()));
      auto sharded = group_sharded_parallel(net, clipped(net), level, group, {.segment_size = 0});
      ASSERT_NE(sharded.optimizer.impl()->sharded(), nullptr) << level;
      expect_same(after_training(sharded.model, sharded.optimizer, group, device(group.rank())),
                  wanted);
    });
  }
}

TEST_P(ShardedOnDevices, AFewRanksDivideWhatOthersDivideToo) {
  ARGOSY_NEED_DEVICES(4);
  on_ranks(4, [&](comm::Group& group) {
    const auto trained = [&](at::Device place, bool divides) {
      Blocks net;
      net->to(place);
      DdpOptions options{.shared_memory = false};
      if (divides) {
        options.shard = ShardOptions{.degree = 2, .unit_bytes = 0};
      }
      Wrapper model(net, group, options);
      optim::Optimizer optimizer = clipped(model);
      EXPECT_EQ(model.divide_step(optimizer), divides);
      return after_training(model, optimizer, group, place);
    };
    expect_same(trained(device(group.rank()), true), trained(at::kCPU, false));
  });
}

TEST_P(ShardedOnDevices, MixedPrecision) {
  ARGOSY_NEED_DEVICES(2);
  for (const bool in_f32 : {false, true}) {
    on_ranks(2, [&](comm::Group& group) {
      const auto trained = [&](at::Device place) {
        Blocks net;
        net->to(place);
        MixedPrecision mixed;
        if (in_f32) {
          mixed.reduce_dtype = at::kFloat;
        }
        Wrapper model = fully_shard(
            net, group, {.shard = ShardOptions{.unit_bytes = 0, .mixed_precision = mixed}});
        optim::Optimizer optimizer = clipped(model);
        EXPECT_TRUE(model.divide_step(optimizer));
        for (int step = 0; step < 3; ++step) {
          const at::Tensor x = values({4, 3}, group.rank() + 10.0 * step, at::kFloat).to(place);
          model(x).to(at::kFloat).square().mean().backward();
          optimizer.step();
          optimizer.zero_grad();
        }
        Tensors masters;
        for (const auto& [name, states] : optimizer.state_dict().parameters) {
          masters.push_back(states.at("master").clone());
        }
        return masters;
      };
      expect_same(trained(device(group.rank())), trained(at::kCPU));
    });
  }
}

/// Virtual ranks that are dealt unevenly, and spares.
TEST_P(ShardedOnDevices, RanksWithFewerVirtualRanksFollowTheOthers) {
  ARGOSY_NEED_DEVICES(3);
  for (const int64_t virtual_ranks : {4, 2}) {
    on_ranks(3, [&](comm::Group& group) {
      const auto trained = [&](at::Device place, bool divides) {
        Blocks net;
        net->to(place);
        DdpOptions options{.shared_memory = false, .virtual_ranks = virtual_ranks};
        if (divides) {
          options.shard = ShardOptions{.unit_bytes = 0};
        }
        Wrapper model(net, group, options);
        optim::Optimizer optimizer = clipped(model);
        (void)model.divide_step(optimizer);
        const IndexRange leaves = even_part(virtual_ranks, group.size(), group.rank());
        for (int step = 0; step < 3; ++step) {
          for (int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
            model.begin({.leaf = leaf - leaves.begin, .leaves = leaves.size()});
            const double seed = static_cast<double>(leaf) + 10.0 * step;
            model(values({4, 3}, seed, at::kFloat).to(place)).square().mean().backward();
          }
          model.end_update();
          optimizer.step();
          optimizer.zero_grad();
        }
        Tensors results;
        for (const at::Tensor& parameter : model.parameters()) {
          results.push_back(parameter.detach().clone());
        }
        return results;
      };
      expect_same(trained(device(group.rank()), true), trained(at::kCPU, false));
    });
  }
}

TEST_P(ShardedOnDevices, BlocksAreComputedAgain) {
  ARGOSY_NEED_DEVICES(2);
  for (const bool saves : {false, true}) {
    on_ranks(2, [&](comm::Group& group) {
      const auto gradients = [&](at::Device place, bool again) {
        torch::nn::Sequential net;
        for (int i = 0; i < 4; ++i) {
          net->push_back(torch::nn::Linear(6, 6));
          net->push_back(torch::nn::Tanh());
        }
        testing::fill(*net, 1);
        net->to(place);
        DdpOptions options{.shared_memory = false};
        if (again) {
          options.shard = ShardOptions{.unit_bytes = 0};
        }
        DistributedDataParallel model(net, group, options);
        if (again) {
          recompute_blocks(
              *net,
              {},
              {.policy = saves ? must_save({"aten::addmm"})
                               : std::function<CheckpointPolicy(const std::string&)>()});
        }
        for (int step = 0; step < 2; ++step) {
          const at::Tensor x = values({4, 6}, group.rank() + 3.0 * step, at::kFloat).to(place);
          model.template forward<at::Tensor>(x).square().mean().backward();
        }
        Tensors results;
        for (const at::Tensor& parameter : model.parameters()) {
          results.push_back(parameter.grad().clone());
        }
        return results;
      };
      expect_same(gradients(device(group.rank()), true), gradients(at::kCPU, false));
    });
  }
}

TEST_P(ShardedOnDevices, OffloadIsRefusedThere) {
  ARGOSY_NEED_DEVICES(2);
  on_ranks(2, [&](comm::Group& group) {
    Blocks net;
    net->to(device(group.rank()));
    EXPECT_THAT(testing::error_of([&] {
                  (void)fully_shard(
                      net, group, {.shard = ShardOptions{.offload = Offload{"/tmp"}}});
                }),
                ::testing::HasSubstr("only state of parameters on the CPU can lie in files"));
  });
}

ARGOSY_ON_DEVICES(ShardedOnDevices);

}  // namespace
}  // namespace argosy::parallel
