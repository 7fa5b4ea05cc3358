/// Models that are made without memory, and wrapped.
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/deferred.h"
#include "argosy/engine/seed.h"
#include "argosy/engine/state_dict.h"
#include "argosy/optim/optim.h"
#include "argosy/parallel/ddp/divided_step_test_support.h"
#include "argosy/parallel/sharded/fully_shard.h"
#include "argosy/parallel/sharded/memory_pool.h"

#include "tests/support/error_text.h"

namespace argosy::parallel {
namespace {

using testing::expect_same_bits;
using testing::on_ranks;
using testing::values;

/// A user's model of torch::nn's layers, with parameters over and under a page, and a buffer.
struct LayersImpl : torch::nn::Module {
  LayersImpl() {
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < 3; ++i) {
      blocks->push_back(torch::nn::Sequential(torch::nn::Linear(64, 64), torch::nn::Tanh()));
    }
    out = register_module("out", torch::nn::Linear(64, 2));
    shift = register_buffer("shift", torch::randn({2000}));
    frozen = register_parameter("frozen", torch::randn({64, 64}), /*requires_grad=*/false);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& block : *blocks) {
      x = block->as<torch::nn::Sequential>()->forward(x);
    }
    return out(torch::matmul(x, frozen)) + shift[3];
  }
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::Linear out{nullptr};
  torch::Tensor shift, frozen;
};
TORCH_MODULE(Layers);

/// The generator is the process's, and ranks are threads here.
Layers make(bool is_deferred, uint64_t seed = 9) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  seed_everything(seed);
  return is_deferred ? engine::deferred<Layers>() : Layers();
}

template <typename M>
void train(M& model, optim::Optimizer& optimizer, const comm::Group& group) {
  for (int step = 0; step < 3; ++step) {
    model(values({4, 64}, group.rank() + 10.0 * step, at::kFloat)).square().mean().backward();
    optimizer.step();
    optimizer.zero_grad();
  }
}

TEST(DeferredModel, EachRankComputesItsPartOfTheInitialValues) {
  for (const auto& [ranks, degree] : {std::pair(1, 0), {2, 0}, {3, 0}, {4, 2}}) {
    on_ranks(ranks, [&, degree = degree](comm::Group& group) {
      const Layers net = make(true);
      auto sharded =
          fully_shard(net, group, {.shard = ShardOptions{.degree = degree, .unit_bytes = 0}});
      if (group.size() > 1) {
        for (const auto& item : net->named_parameters()) {
          EXPECT_EQ(sharded::ShardedMemory::of(item.value()) != nullptr,
                    item.value().requires_grad());
          EXPECT_FALSE(engine::is_deferred(item.value())) << item.key();
        }
      }
      const Layers plain = make(false);
      DistributedDataParallel<Layers> whole(plain, group, {.shared_memory = false});
      optim::Optimizer a = optim::AdamW(sharded, {.lr = 1e-2});
      optim::Optimizer b = optim::AdamW(whole, {.lr = 1e-2});
      (void)sharded.divide_step(a);
      for (const bool trained : {false, true}) {
        if (trained) {
          train(sharded, a, group);
          train(whole, b, group);
        }
        for (const auto& item : plain->named_parameters()) {
          expect_same_bits(net->named_parameters()[item.key()], item.value(), item.key());
        }
        expect_same_bits(net->shift, plain->shift, "a buffer");
      }
    });
  }
}

TEST(DeferredModel, WithoutShardingItIsAsEver) {
  for (const bool shared : {false, true}) {
    on_ranks(2, [&](comm::Group& group) {
      const Layers net = make(true), plain = make(false);
      DistributedDataParallel<Layers> late(net, group, {.shared_memory = shared});
      DistributedDataParallel<Layers> early(plain, group, {.shared_memory = shared});
      optim::Optimizer a = optim::AdamW(late, {.lr = 1e-2});
      optim::Optimizer b = optim::AdamW(early, {.lr = 1e-2});
      train(late, a, group);
      train(early, b, group);
      for (const auto& item : plain->named_parameters()) {
        expect_same_bits(net->named_parameters()[item.key()], item.value(), item.key());
      }
    });
  }
}

TEST(DeferredModel, NeedsNoWrapper) {
  const Layers net = make(true), plain = make(false);
  optim::Optimizer a = optim::AdamW(net, {.lr = 1e-2});
  optim::Optimizer b = optim::AdamW(plain, {.lr = 1e-2});
  for (int step = 0; step < 2; ++step) {
    for (const auto& [model, optimizer] : {std::pair(net, &a), {plain, &b}}) {
      model.ptr()->forward(values({4, 64}, step, at::kFloat)).square().mean().backward();
      optimizer->step();
      optimizer->zero_grad();
    }
  }
  for (const auto& [name, tensor] : engine::state_dict(plain)) {
    expect_same_bits(engine::state_dict(net).at(name), tensor, name);
  }
}

TEST(DeferredModel, AStateDictHasItsMemory) {
  for (const auto& [name, tensor] : engine::state_dict(make(true))) {
    EXPECT_NE(tensor.data_ptr(), nullptr) << name;
  }
}

TEST(DeferredModel, InitializeGoesFirst) {
  on_ranks(2, [](comm::Group& group) {
    const auto ones = [](const std::string&, const at::Tensor& part, const IndexRange&) {
      part.fill_(1);
    };
    const Layers net = make(true);
    const auto model = fully_shard(net, group, {.shard = ShardOptions{.initialize = ones}});
    EXPECT_EQ(net->out->weight.sum().item<float>(), 128);
    const at::Tensor first = net->blocks->ptr(0)->parameters()[0];
    EXPECT_EQ(first.sum().item<float>(), 64 * 64);
  });
}

TEST(DeferredModel, RanksWithOtherValuesAreNamed) {
  on_ranks(2, [](comm::Group& group) {
    const Layers net = make(true, group.rank() == 0 ? 1 : 2);
    const std::string error = test::error_text<UsageError>(
        [&] { (void)fully_shard(net, group, {.shard = ShardOptions{}}); });
    EXPECT_NE(error.find("blocks.0.0.weight"), std::string::npos) << error;
    EXPECT_NE(error.find("initial values"), std::string::npos) << error;
    EXPECT_NE(error.find("seed_everything()"), std::string::npos) << error;
  });
}

}  // namespace
}  // namespace argosy::parallel
