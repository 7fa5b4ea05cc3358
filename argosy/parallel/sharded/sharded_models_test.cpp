/// fully_shard() of models of several kinds: libtorch's own, odd ones, and those of pictures.
#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "argosy/parallel/sharded/fully_shard_test_support.h"
#include "argosy/vision/ops/convolution.h"
#include "argosy/vision/ops/norm_relu.h"

namespace argosy::parallel {
namespace {

using testing::Blocks;
using testing::expect_same_bits;
using testing::on_ranks;
using testing::small_units;
using testing::values;

TEST(FullyShard, TorchsOwnEncoderStaysAsItIs) {
  on_ranks(2, [&](comm::Group& group) {
    const auto make = [] {
      torch::nn::TransformerEncoder encoder(torch::nn::TransformerEncoderOptions(
          torch::nn::TransformerEncoderLayerOptions(16, 4).dim_feedforward(32).dropout(0.0), 3));
      testing::fill(*encoder, 1);
      return encoder;
    };
    auto sharded = fully_shard(make(), group, {.shard = small_units()});
    DistributedDataParallel plain(make(), group, {.shared_memory = false});
    optim::Optimizer a = optim::AdamW(sharded, {.lr = 0.01});
    optim::Optimizer b = optim::AdamW(plain, {.lr = 0.01});
    sharded.divide_step(a);
    EXPECT_EQ(sharded.stats().buckets.size(), 3U) << "a unit for each layer";
    for (int step = 0; step < 4; ++step) {
      const at::Tensor x = values({5, 2, 16}, group.rank() + 10.0 * step, at::kFloat);
      sharded(x).square().mean().backward();
      plain(x).square().mean().backward();
      for (optim::Optimizer* const each : {&a, &b}) {
        each->step();
        each->zero_grad();
      }
    }
    sharded.eval();
    plain.eval();
    const torch::NoGradGuard no_grad;
    const at::Tensor x = values({5, 2, 16}, 3, at::kFloat);
    expect_same_bits(sharded(x), plain(x), "of the trained encoders");
  });
}

TEST(FullyShard, TakesHoldersPointersAnyModuleAndSequential) {
  on_ranks(2, [&](comm::Group& group) {
    const auto call = [](auto& model, const at::Tensor& x) {
      if constexpr (std::invocable<decltype(model), const at::Tensor&>) {
        return model(x);
      } else {
        return model.template forward<at::Tensor>(x);  // of a Sequential
      }
    };
    const auto trained = [&](auto model) {
      optim::Optimizer optimizer = optim::AdamW(model, {.lr = 0.01});
      (void)model.divide_step(optimizer);
      for (int step = 0; step < 3; ++step) {
        const at::Tensor x = values({4, 3}, group.rank() + 10.0 * step, at::kFloat);
        call(model, x).square().mean().backward();
        optimizer.step();
        optimizer.zero_grad();
      }
      std::vector<at::Tensor> all;
      for (const at::Tensor& parameter : model.parameters()) {
        all.push_back(parameter.detach().clone());
      }
      return all;
    };
    const DdpOptions options{.shard = small_units()};
    const auto wanted = trained(DistributedDataParallel(Blocks(), group, {.shared_memory = false}));
    const std::vector<std::vector<at::Tensor>> all = {
        trained(fully_shard(torch::nn::Sequential(Blocks()), group, options)),
        trained(fully_shard(Blocks().ptr(), group, options)),
        trained(fully_shard(torch::nn::AnyModule(Blocks()), group, options))};
    for (const std::vector<at::Tensor>& got : all) {
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        expect_same_bits(got[i], wanted[i], std::to_string(i));
      }
    }
  });
}

/// A tied weight, a frozen one, one that only some passes use.
struct OddImpl : torch::nn::Module {
  OddImpl() {
    table = register_module("table", torch::nn::Embedding(9, 6));
    frozen = register_module("frozen", torch::nn::Linear(6, 6));
    rare = register_module("rare", torch::nn::Linear(6, 6));
    testing::fill(*this, 1);
    tied = register_parameter("tied", table->weight);
    frozen->weight.requires_grad_(false);
  }
  torch::Tensor forward(const torch::Tensor& tokens, bool with_rare) {
    at::Tensor x = frozen(table(tokens)).tanh();
    return torch::nn::functional::linear(with_rare ? rare(x) : x, tied);
  }
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear frozen{nullptr}, rare{nullptr};
  torch::Tensor tied;
};
TORCH_MODULE(Odd);

TEST(FullyShard, TiedFrozenAndUnusedParameters) {
  on_ranks(2, [&](comm::Group& group) {
    DdpOptions options{.find_unused_parameters = true, .shared_memory = false};
    DistributedDataParallel plain(Odd(), group, options);
    options.shard = small_units();
    auto sharded = fully_shard(Odd(), group, options);
    optim::Optimizer a = optim::Adam(sharded, {.lr = 0.01});
    optim::Optimizer b = optim::Adam(plain, {.lr = 0.01});
    sharded.divide_step(a);
    for (int step = 0; step < 6; ++step) {
      if (step == 4) {  // frozen later
        sharded.module()->frozen->bias.requires_grad_(false);
        plain.module()->frozen->bias.requires_grad_(false);
      }
      const at::Tensor tokens = (at::arange(4, at::kLong) * (2 + step) + group.rank()) % 9;
      const bool rare = step % 3 == 0;
      for (auto* const model : {&sharded, &plain}) {
        (*model)(tokens, rare).square().mean().backward();
      }
      for (size_t i = 0; i < plain.parameters().size(); ++i) {
        const at::Tensor& x = sharded.parameters()[i].grad();
        const at::Tensor& y = plain.parameters()[i].grad();
        ASSERT_EQ(x.defined(), y.defined()) << step << " " << i;
        if (x.defined()) {
          expect_same_bits(x, y, "gradient " + std::to_string(i) + " of " + std::to_string(step));
        }
      }
      for (optim::Optimizer* const each : {&a, &b}) {
        each->step();
        each->zero_grad({.set_to_none = step != 2});
      }
    }
    for (size_t i = 0; i < plain.parameters().size(); ++i) {
      expect_same_bits(sharded.parameters()[i], plain.parameters()[i], std::to_string(i));
    }
  });
}

TEST(FullyShard, RanksThatUseOtherUnitsAreNamed) {
  for (const char* const backend : {"shm", "gloo", "hierarchical"}) {
    const auto outcomes = testing::try_ranks_over(
        backend,
        [&](const comm::Group& group) {
          auto model =
              fully_shard(Blocks(), group, {.shared_memory = false, .shard = small_units()});
          const auto& blocks = *model.module()->blocks;  // equal ones: so are the bytes of a gather
          const auto& own = blocks[group.rank() == 1 ? 2 : 1];
          (void)own->as<torch::nn::Sequential>()->forward(at::ones({1, 24}));
          (void)model(at::ones({1, 3}));
        },
        std::chrono::milliseconds(1500));
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_THAT(outcome.error, ::testing::HasSubstr("of its divided parameters while"))
          << backend;
    }
  }
}

/// A block of pictures: convolutions that are computed as products of matrices, fused norms.
struct PicturesImpl : torch::nn::Module {
  PicturesImpl() {
    for (int i = 0; i < 2; ++i) {
      convs.push_back(register_module(
          "conv" + std::to_string(i),
          torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 32, 3).padding(1).bias(false))));
      norms.push_back(register_module("norm" + std::to_string(i), torch::nn::BatchNorm2d(32)));
    }
    head = register_module("head", torch::nn::Linear(32, 3));
    testing::fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& images) {
    at::Tensor x = images;
    for (size_t i = 0; i < convs.size(); ++i) {
      x = vision::ops::norm_relu(norms[i], vision::ops::convolution(convs[i], x));
    }
    return head(x.mean({2, 3}));
  }
  std::vector<torch::nn::Conv2d> convs;
  std::vector<torch::nn::BatchNorm2d> norms;
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Pictures);

TEST(FullyShard, OperatorsOfPicturesHaveTheBits) {
  for (const auto autocast : {std::optional<at::ScalarType>(), std::optional(at::kBFloat16)}) {
    on_ranks(2, [&](comm::Group& group) {
      const auto make = [] {
        Pictures model;
        model->to(torch::kFloat);
        for (const torch::nn::Conv2d& conv : model->convs) {
          conv->weight.set_data(conv->weight.contiguous(at::MemoryFormat::ChannelsLast));
        }
        return model;
      };
      DdpOptions options{.shared_memory = false, .autocast = autocast};
      DistributedDataParallel plain(make(), group, options);
      options.shard = small_units();
      auto sharded = fully_shard(make(), group, options);
      optim::Optimizer a = optim::AdamW(sharded, {.lr = 0.01});
      optim::Optimizer b = optim::AdamW(plain, {.lr = 0.01});
      sharded.divide_step(a);
      for (int step = 0; step < 3; ++step) {
        const at::Tensor images = values({8, 32, 4, 4}, group.rank() + 10.0 * step, at::kFloat)
                                      .contiguous(at::MemoryFormat::ChannelsLast);
        for (auto* const model : {&sharded, &plain}) {
          (*model)(images).square().mean().backward();
        }
        for (optim::Optimizer* const each : {&a, &b}) {
          each->step();
          each->zero_grad();
        }
      }
      for (size_t i = 0; i < plain.parameters().size(); ++i) {
        expect_same_bits(sharded.parameters()[i], plain.parameters()[i], std::to_string(i));
      }
    });
  }
}

}  // namespace
}  // namespace argosy::parallel
