// 16-bit parameters that are rounded from the parts of f32 which ranks keep.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "argosy/base/even_part.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/parts.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"
#include "argosy/parallel/sharded/memory_pool.h"

namespace argosy::parallel {
namespace {

using testing::error_of;
using testing::expect_same_bits;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::small_units;
using testing::values;

/// Blocks that say nothing of types, so that they compute in that of their parameters.
struct PlainBlocksImpl : torch::nn::Module {
  PlainBlocksImpl() {
    in = register_module("in", torch::nn::Linear(3, 24));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < 4; ++i) {
      blocks->push_back(
          torch::nn::Sequential(torch::nn::Linear(24, 40), torch::nn::Linear(40, 24)));
    }
    out = register_module("out", torch::nn::Linear(24, 2));
    testing::fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor hidden = in(x);
    for (const auto& block : *blocks) {
      hidden = hidden + block->as<torch::nn::Sequential>()->forward(hidden).tanh();
    }
    return out(hidden);
  }
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::ModuleList blocks{nullptr};
};
TORCH_MODULE(PlainBlocks);
using MixedWrapper = DistributedDataParallel<PlainBlocks>;

at::Tensor input_of(int64_t leaf, int step) {
  return values({4, 3}, static_cast<double>(leaf) + 10.0 * step, at::kFloat);
}

/// The definition: each rank has masters, and a model that is rounded from them.
struct Definition {
  explicit Definition(const MixedPrecision& mixed) : mixed_(mixed) { round(); }
  void round() {
    const torch::NoGradGuard no_grad;
    const auto from = masters->parameters();
    std::vector<at::Tensor> to = model->parameters();
    for (size_t i = 0; i < from.size(); ++i) {
      to[i].set_data(from[i].detach().to(mixed_.param_dtype));
      to[i].mutable_grad() = at::Tensor();
    }
  }
  /// Averages over all ranks, in the type that the policy names, for the masters.
  void average(const comm::Group& group) {
    const torch::NoGradGuard no_grad;
    const auto from = model->parameters();
    std::vector<at::Tensor> to = masters->parameters();
    for (size_t i = 0; i < from.size(); ++i) {
      const at::Tensor grad = from[i].grad().to(mixed_.reduces_in(), false, /*copy=*/true);
      comm::all_reduce(grad, group, {.op = comm::ReduceOp::kAvg});
      to[i].mutable_grad() = grad.to(at::kFloat);
    }
  }
  MixedPrecision mixed_;
  PlainBlocks masters, model;
};

optim::Optimizer adam(const auto& model) {
  return optim::AdamW(model,
                      {.lr = 0.03, .grad_clip = optim::ClipGradByGlobalNorm(0.1)},
                      {{.names = {"*.bias"}, .lr_scale = 3, .weight_decay = 0.0}});
}

ShardOptions mixed_units(const MixedPrecision& mixed, int degree = 0) {
  ShardOptions options = small_units();
  options.mixed_precision = mixed;
  options.degree = degree;
  return options;
}

const std::vector<MixedPrecision>& policies() {
  static const std::vector<MixedPrecision> all{
      {.param_dtype = at::kBFloat16},
      {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat, .output_dtype = at::kFloat}};
  return all;
}

void step(optim::Optimizer& optimizer) {
  optimizer.step();
  optimizer.zero_grad();
}

TEST(MixedPrecision, HasTheBitsOfItsDefinition) {
  for (const MixedPrecision& mixed : policies()) {
    for (const auto& [size, degree] : {std::pair(1, 0), {2, 0}, {3, 0}, {4, 2}}) {
      on_ranks(size, [&, degree = degree](comm::Group& group) {
        auto sharded = fully_shard(PlainBlocks(), group, {.shard = mixed_units(mixed, degree)});
        Definition plain(mixed);
        optim::Optimizer a = adam(sharded);
        optim::Optimizer b = adam(plain.masters);
        ASSERT_TRUE(sharded.divide_step(a));
        for (int i = 0; i < 5; ++i) {
          const at::Tensor x = input_of(group.rank(), i);
          const at::Tensor output = sharded(x);
          EXPECT_EQ(output.scalar_type(), mixed.output_dtype.value_or(at::kBFloat16));
          output.to(at::kFloat).square().mean().backward();
          plain.model(x.to(mixed.param_dtype)).to(at::kFloat).square().mean().backward();
          plain.average(group);
          for (size_t p = 0; i == 2 && p < plain.masters->parameters().size(); ++p) {
            expect_same_bits(sharded.parameters()[p].grad().to(at::kFloat),
                             plain.masters->parameters()[p].grad(),
                             "gradient " + std::to_string(p));
          }
          step(a);
          step(b);
          plain.round();
        }
        const optim::OptimizerState state = a.state_dict();
        expect_same_bits(b.state_dict(), state, "state");
        for (const auto& item : plain.masters->named_parameters()) {
          expect_same_bits(state.find(item.key())->at("master"), item.value(), item.key());
        }
        for (const auto& item : plain.model->named_parameters()) {
          const at::Tensor rounded = sharded->named_parameters()[item.key()];
          ASSERT_EQ(rounded.scalar_type(), at::kBFloat16);
          expect_same_bits(rounded, item.value(), "rounded " + item.key());
        }
      });
    }
  }
}

TEST(MixedPrecision, VirtualRanksHaveTheSameBitsOnAnyNumberOfProcesses) {
  for (const MixedPrecision& mixed : policies()) {
    std::vector<at::Tensor> expected;
    for (const int size : {4, 1, 2, 3, 5}) {
      on_ranks(size, [&](comm::Group& group) {
        auto model =
            fully_shard(PlainBlocks(), group, {.shard = mixed_units(mixed), .virtual_ranks = 4});
        optim::Optimizer optimizer = adam(model);
        ASSERT_TRUE(model.divide_step(optimizer));
        const IndexRange leaves = even_part(4, size, group.rank());
        for (int i = 0; i < 3; ++i) {
          for (int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
            model.begin({.leaf = leaf - leaves.begin, .leaves = leaves.size()});
            model(input_of(leaf, i)).to(at::kFloat).square().mean().backward();
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
          for (size_t p = 0; p < mine.size(); ++p) {
            expect_same_bits(mine[p], expected[p], std::to_string(p));
          }
        }
      });
    }
  }
}

TEST(MixedPrecision, GathersHalfTheBytesAndKeepsMasters) {
  on_ranks(2, [&](comm::Group& group) {
    for (const bool share : {false, true}) {
      auto model = fully_shard(
          PlainBlocks(), group, {.shared_memory = share, .shard = mixed_units(policies()[0])});
      for (const at::Tensor& parameter : model.parameters()) {
        const auto memory = sharded::ShardedMemory::of(parameter);
        ASSERT_NE(memory, nullptr);
        EXPECT_EQ(memory->part().scalar_type(), at::kFloat);
      }
      const WholeParameters whole = model.whole_parameters();
      const at::Tensor weight = model->in->weight;
      EXPECT_EQ(sharded::ShardedMemory::of(weight)->whole().scalar_type(), at::kBFloat16);
    }
  });
}

/// Nobody need come who has nothing to do with it.
TEST(MixedPrecision, ARankReadsAloneAfterItsStateWasRead) {
  const auto outcomes = testing::try_ranks_over("shm", [&](const comm::Group& group) {
    auto model = fully_shard(PlainBlocks(), group, {.shard = mixed_units(policies()[0])});
    optim::Optimizer optimizer = adam(model);
    (void)model.divide_step(optimizer);
    model(input_of(group.rank(), 0)).square().mean().backward();
    optimizer.step();
    const optim::OptimizerState state = optimizer.state_dict();
    if (group.rank() == 0) {
      EXPECT_FALSE(at::isnan(model->in->weight.sum()).item<bool>());
    }
    comm::barrier(group);
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error, "");
  }
}

/// A model goes out and comes back rounded, its masters by the optimizer's state.
TEST(MixedPrecision, AStateBringsTheMasters) {
  for (const auto& [size, degree] : {std::pair(3, 0), {4, 2}}) {
    on_ranks(size, [&, degree = degree](comm::Group& group) {
      const ShardOptions options = mixed_units(policies()[1], degree);
      auto first = fully_shard(PlainBlocks(), group, {.shard = options});
      PlainBlocks other;
      testing::fill(*other, 5);
      auto second = fully_shard(other, group, {.shard = options});
      optim::Optimizer a = adam(first);
      optim::Optimizer b = adam(second);
      (void)first.divide_step(a);
      (void)second.divide_step(b);
      const auto train = [&](MixedWrapper& model, optim::Optimizer& optimizer, int i) {
        model(input_of(group.rank(), i)).square().mean().backward();
        step(optimizer);
      };
      for (int i = 0; i < 3; ++i) {
        train(first, a, i);
      }
      const optim::OptimizerState state = a.state_dict();
      for (const bool model_first : {true, false}) {
        if (!model_first) {
          b.load_state_dict(state);
        }
        {
          const WholeParameters from = first.whole_parameters();
          const WholeParameters to = second.whole_parameters();
          const torch::NoGradGuard no_grad;
          for (size_t p = 0; p < first.parameters().size(); ++p) {
            second.parameters()[p].copy_(first.parameters()[p]);
          }
        }
        if (model_first) {
          b.load_state_dict(state);
        }
        expect_same_bits(b.state_dict(), state, "loaded");
      }
      train(first, a, 3);
      train(second, b, 3);
      expect_same_bits(b.state_dict(), a.state_dict(), "trained on");
    });
  }
}

/// Where nothing was updated yet, a parameter has a master and no other state.
TEST(MixedPrecision, AStateOfNoStepBringsTheMasters) {
  on_ranks(2, [&](comm::Group& group) {
    const ShardOptions options = mixed_units(policies()[1]);
    auto first = fully_shard(PlainBlocks(), group, {.shard = options});
    PlainBlocks other;
    testing::fill(*other, 5);
    auto second = fully_shard(other, group, {.shard = options});
    optim::Optimizer a = adam(first);
    optim::Optimizer b = adam(second);
    (void)first.divide_step(a);
    (void)second.divide_step(b);
    b.load_state_dict(a.state_dict());
    for (auto& [model, optimizer] : {std::pair(&first, &a), {&second, &b}}) {
      (*model)(input_of(group.rank(), 0)).square().mean().backward();
      step(*optimizer);
    }
    EXPECT_EQ(a.state_dict().parameters.size(), first.parameters().size());
    expect_same_bits(b.state_dict(), a.state_dict(), "from the first masters on");
  });
}

TEST(MixedPrecision, FrozenParametersAreRoundedAndTheRestIsRestored) {
  on_ranks(2, [&](comm::Group& group) {
    PlainBlocks net;
    net->out->weight.requires_grad_(false);
    const at::Tensor before = net->in->weight.detach().clone();
    {
      auto model = fully_shard(net, group, {.shard = mixed_units(policies()[1])});
      EXPECT_EQ(net->out->weight.scalar_type(), at::kBFloat16);
      model(input_of(group.rank(), 0)).square().mean().backward();
    }
    net->zero_grad();
    net->out->weight.set_data(net->out->weight.to(at::kFloat));
    const MixedWrapper again(net, group);
    expect_same_bits(net->in->weight, before, "the master, not what was rounded from it");
  });
}

TEST(MixedPrecision, AnOptimizerOfAllParametersLeavesFrozenOnes) {
  on_ranks(2, [&](comm::Group& group) {
    PlainBlocks net;
    net->out->weight.requires_grad_(false);
    auto model = fully_shard(net, group, {.shard = mixed_units(policies()[1])});
    optim::Optimizer optimizer = adam(model);
    (void)model.divide_step(optimizer);
    const at::Tensor frozen = net->out->weight.detach().clone();
    const at::Tensor trained = net->out->bias.detach().to(at::kFloat).clone();
    model(input_of(group.rank(), 0)).square().mean().backward();
    step(optimizer);
    expect_same_bits(net->out->weight, frozen, "frozen");
    EXPECT_FALSE(trained.equal(net->out->bias.detach().to(at::kFloat)));
  });
}

/// Each rank averages its part. The steps of such an average are smaller than a last digit of bf16.
TEST(MixedPrecision, AveragesOf16BitWeightsAreF32) {
  on_ranks(2, [&](comm::Group& group) {
    auto model = fully_shard(PlainBlocks(), group, {.shard = mixed_units(policies()[0])});
    optim::Optimizer optimizer = adam(model);
    (void)model.divide_step(optimizer);
    constexpr double kDecay = 0.999;
    optim::ExponentialMovingAverage average(model, {.decay = kDecay});
    engine::StateDict expected;
    for (int i = 0; i < 4; ++i) {
      model(input_of(group.rank(), i)).square().mean().backward();
      step(optimizer);
      average.update();
      for (const auto& [name, tensor] : engine::state_dict(model)) {
        const at::Tensor now = engine::values_of(tensor).to(at::kBFloat16).to(at::kFloat);
        if (i == 0) {
          expected.set(name, now.clone());
        } else {
          expected.at(name).lerp_(now, 1 - kDecay);
        }
      }
    }
    optim::EmaState before{.num_updates = 4};  // as an earlier version wrote it
    for (const auto& [name, tensor] : average.state_dict().averages) {
      const at::Tensor whole = engine::values_of(tensor);
      expect_same_bits(whole, expected.at(name), name);
      before.averages.set(name, whole.to(at::kBFloat16));
    }
    average.load_state_dict(before);
    for (const auto& [name, tensor] : average.state_dict().averages) {
      expect_same_bits(engine::values_of(tensor), before.averages.at(name).to(at::kFloat), name);
    }
  });
}

TEST(MixedPrecision, AFrozenParameterOf16BitsThatLearnsAgainIsAnError) {
  torch::nn::Linear net(3, 2);
  net->weight.set_data(net->weight.to(at::kBFloat16));
  net->weight.requires_grad_(false);
  optim::Adam optimizer(net, {.lr = 0.1});
  net->bias.sum().backward();
  optimizer.step();
  net->weight.requires_grad_(true);
  net->weight.mutable_grad() = at::ones_like(net->weight);
  EXPECT_THAT(error_of([&] { optimizer.step(); }), HasSubstr("weight"));
}

TEST(MixedPrecision, HasErrorsForWhatItCannotDo) {
  on_ranks(2, [&](comm::Group& group) {
    const auto error = [&](const MixedPrecision& mixed, DdpOptions options = {}) {
      options.shard = mixed_units(mixed);
      return error_of([&] { (void)fully_shard(PlainBlocks(), group, options); });
    };
    EXPECT_THAT(error({.param_dtype = at::kDouble}), HasSubstr("must be Half or BFloat16"));
    EXPECT_THAT(error({.reduce_dtype = at::kHalf}), HasSubstr("must be Float or that of"));
    EXPECT_THAT(error({.param_dtype = at::kHalf}), HasSubstr("cpu cannot compute in Half"));
    EXPECT_THAT(error({}, {.autocast = at::kBFloat16}), HasSubstr("exclude each other"));
    torch::nn::Sequential normed(torch::nn::Linear(3, 2), torch::nn::BatchNorm1d(2));
    EXPECT_THAT(error_of([&] { (void)fully_shard(normed, group, {.shard = mixed_units({})}); }),
                HasSubstr("mixed_precision: 1 keeps running statistics"));
    auto model = fully_shard(PlainBlocks(), group, {.shard = mixed_units({})});
    optim::Optimizer optimizer = adam(model);
    (void)model.divide_step(optimizer);
    model(input_of(group.rank(), 0)).square().mean().backward();
    step(optimizer);
    optim::Optimizer other = adam(PlainBlocks());
    try {
      other.load_state_dict(optimizer.state_dict());
      ADD_FAILURE() << "masters were dropped";
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), HasSubstr("in.weight.master: expected no such state"));
    }
  });
}

}  // namespace
}  // namespace argosy::parallel
