// A training of V virtual ranks has the same bits on any number of processes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>

#include "argosy/base/even_part.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/sgd.h"
#include "argosy/parallel/convert_sync_batchnorm.h"
#include "argosy/parallel/ddp/core.h"
#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

using Tensors = std::vector<at::Tensor>;

/// Adds leaf `first` to `first + n - 1` as the definition says it.
at::Tensor tree_sum(const Tensors& leaves, size_t first, size_t n) {
  if (n == 1) {
    return leaves[first];
  }
  const size_t half = std::bit_floor(n - 1);
  return tree_sum(leaves, first, half) + tree_sum(leaves, first + half, n - half);
}

/// The wrapper, the virtual rank whose turn it is, and which of its micro-batches.
using Model = DistributedDataParallel<TwoHeads>;
struct Turn {
  int64_t virtual_rank = 0;
  int64_t micro = 0;
  bool last_micro = false;
};
using Passes = std::function<void(Model& model, const Turn& turn)>;

TwoHeads f32_heads() {
  TwoHeads heads;
  heads->to(at::kFloat);
  return heads;
}

at::Tensor input_of(const Turn& turn) {
  return values(
      {4, 3},
      10.0 + 3.7 * static_cast<double>(turn.virtual_rank) + 0.9 * static_cast<double>(turn.micro),
      at::kFloat);
}

at::Tensor loss(Model& model, const Turn& turn, bool left = true, bool right = true) {
  const auto [l, r] = model(input_of(turn).to(model->left->weight.scalar_type()), left, right);
  return (l.sum() * 1.7 + r.sum() * 0.3).square();
}

void one_pass(Model& model, const Turn& turn) {
  loss(model, turn).backward();
}

struct VirtualRecipe {
  int64_t virtual_ranks = 8;
  int64_t micros = 1;
  int updates = 1;
  DdpOptions options{};
  at::ScalarType type = at::kFloat;
  CommHook hook{};
  Passes passes = one_pass;
};

void for_each_turn(const VirtualRecipe& recipe,
                   comm::Group& group,
                   const std::function<void(const MicroBatch&, const Turn&)>& body) {
  const IndexRange mine = even_part(recipe.virtual_ranks, group.size(), group.rank());
  for (int64_t leaf = 0; leaf < mine.size(); ++leaf) {
    for (int64_t micro = 0; micro < recipe.micros; ++micro) {
      body({.leaf = leaf, .leaves = mine.size(), .micro = micro, .micros = recipe.micros},
           {mine.begin + leaf, micro, micro + 1 == recipe.micros});
    }
  }
}

/// The gradients after the recipe's updates, of rank 0; all ranks have them to the bit. Undefined
/// ones are empty tensors.
Tensors gradients(const VirtualRecipe& recipe, int processes) {
  Tensors result;
  std::mutex mutex;
  on_ranks(processes, [&](comm::Group& group) {
    TwoHeads heads;
    heads->to(recipe.type);
    DdpOptions options = recipe.options;
    options.virtual_ranks = recipe.virtual_ranks;
    Model model(heads, group, options);
    if (recipe.hook != nullptr) {
      model.register_comm_hook(recipe.hook);
    }
    Tensors mine;
    for (int update = 0; update < recipe.updates; ++update) {
      for_each_turn(recipe, group, [&](const MicroBatch& micro_batch, const Turn& turn) {
        model.begin(micro_batch);
        recipe.passes(model, turn);
      });
      model.end_update();
      mine.clear();
      const torch::NoGradGuard no_grad;
      for (at::Tensor& parameter : model.parameters()) {
        const at::Tensor& grad = parameter.grad();
        mine.push_back(grad.defined() ? grad.clone() : at::empty({0}));
        if (grad.defined()) {
          parameter.sub_(grad, 0.01);
        }
        parameter.mutable_grad() = at::Tensor();
      }
    }
    const std::lock_guard lock(mutex);
    if (result.empty()) {
      result = mine;
    }
    for (size_t i = 0; i < mine.size(); ++i) {
      EXPECT_TRUE(mine[i].equal(result[i])) << "parameter " << i << " of rank " << group.rank();
    }
  });
  return result;
}

void expect_same(const Tensors& got, const Tensors& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i].equal(expected[i])) << what << ", parameter " << i << ":\n"
                                           << got[i] << "\nexpected\n"
                                           << expected[i];
  }
}

/// The bits of as many processes as virtual ranks, on fewer, and with spares.
void expect_same_on_any_number(const VirtualRecipe& recipe) {
  const auto each = static_cast<int>(recipe.virtual_ranks);
  const Tensors expected = gradients(recipe, each);
  for (const int processes : {1, 2, 3, 4, 5, each + 1, each + 2}) {
    if (processes != each) {
      expect_same(gradients(recipe, processes), expected, fmt::format("{} processes", processes));
    }
  }
}

// The definition, from the gradients of a network that knows nothing of ranks.
TEST(VirtualRanks, AreAveragedAlongTheTree) {
  for (const int64_t virtual_ranks : {1, 2, 3, 5, 6, 7, 8, 12}) {
    for (const int64_t micros : {int64_t{1}, int64_t{3}}) {
      const VirtualRecipe recipe{.virtual_ranks = virtual_ranks, .micros = micros};
      std::vector<Tensors> leaves;  // of each parameter
      for (int64_t v = 0; v < virtual_ranks; ++v) {
        TwoHeads plain;
        plain->to(at::kFloat);
        for (int64_t micro = 0; micro < micros; ++micro) {
          const auto [l, r] = plain->forward(input_of({v, micro, false}), true, true);
          (l.sum() * 1.7 + r.sum() * 0.3).square().backward();
        }
        const auto parameters = plain->parameters();
        leaves.resize(parameters.size());
        for (size_t i = 0; i < parameters.size(); ++i) {
          leaves[i].push_back(parameters[i].grad().clone());
        }
      }
      Tensors expected;
      for (const Tensors& of_parameter : leaves) {
        expected.push_back(tree_sum(of_parameter, 0, of_parameter.size()) /
                           static_cast<double>(virtual_ranks));
      }
      for (int processes = 1; processes <= 8; ++processes) {
        expect_same(gradients(recipe, processes),
                    expected,
                    fmt::format("{} virtual ranks, {} micro-batches, {} processes",
                                virtual_ranks,
                                micros,
                                processes));
      }
    }
  }
}

TEST(VirtualRanks, GoThroughRebuiltBucketsAndSmallOnes) {
  for (const int64_t cap : {int64_t{1}, int64_t{60}, int64_t{1} << 20}) {
    expect_same_on_any_number({.virtual_ranks = 6,
                               .micros = 3,
                               .updates = 3,
                               .options = {.first_bucket_bytes = cap, .bucket_cap_bytes = cap}});
  }
}

TEST(VirtualRanks, MayMakeSeveralBackwardPasses) {
  expect_same_on_any_number(
      {.virtual_ranks = 8, .micros = 2, .updates = 2, .passes = [](Model& model, const Turn& turn) {
         loss(model, turn).backward();
         loss(model, {turn.virtual_rank, turn.micro + 5}).backward();
         loss(model, {turn.virtual_rank, turn.micro + 9}).backward();
       }});
}

TEST(VirtualRanks, MayGatherUnderNoSync) {
  expect_same_on_any_number(
      {.virtual_ranks = 5, .updates = 2, .passes = [](Model& model, const Turn& turn) {
         loss(model, turn).backward();
         {
           const auto local = model.no_sync();
           loss(model, {turn.virtual_rank, 5}).backward();
         }
         loss(model, {turn.virtual_rank, 9}).backward();
       }});
}

TEST(VirtualRanks, MayUseDifferentParameters) {
  const VirtualRecipe recipe{.virtual_ranks = 7,
                             .micros = 2,
                             .updates = 2,
                             .options = {.find_unused_parameters = true},
                             .passes = [](Model& model, const Turn& turn) {
                               loss(model, turn, turn.virtual_rank == 3, false).backward();
                             }};
  expect_same_on_any_number(recipe);
  const Tensors some = gradients(recipe, 2);
  EXPECT_GT(some[2].numel(), 0) << "left.weight, of virtual rank 3 alone";
  EXPECT_EQ(some[4].numel(), 0) << "right.weight, which nobody uses";
}

// What lies between is f32, and is rounded once.
TEST(VirtualRanks, HaveBitsOfTheirOwnInSixteenBits) {
  for (const at::ScalarType type : {at::kBFloat16, at::kDouble}) {
    expect_same_on_any_number({.virtual_ranks = 6, .micros = 2, .updates = 2, .type = type});
  }
  for (const CommHook& hook : {fp16_compress(), bf16_compress()}) {
    expect_same_on_any_number({.virtual_ranks = 8, .updates = 2, .hook = hook});
    expect_same_on_any_number({.virtual_ranks = 6, .micros = 2, .type = at::kDouble, .hook = hook});
  }
}

TEST(VirtualRanks, AddToGradientsThatWereNotCleared) {
  Tensors expected;
  std::mutex mutex;
  for (const int processes : {4, 1, 3, 6}) {
    on_ranks(processes, [&](comm::Group& group) {
      Model model(f32_heads(), group, {.virtual_ranks = 4});
      for (int update = 0; update < 3; ++update) {
        for_each_turn({.virtual_ranks = 4}, group, [&](const MicroBatch& each, const Turn& turn) {
          model.begin(each);
          one_pass(model, turn);
        });
        model.end_update();
      }
      Tensors mine;
      for (const at::Tensor& parameter : model.parameters()) {
        mine.push_back(parameter.grad().clone());
      }
      const std::lock_guard lock(mutex);
      expected = expected.empty() ? mine : expected;
      expect_same(mine, expected, fmt::format("{} processes", processes));
    });
  }
}

// As programs do that step after the passes: what an update has left is not added.
TEST(VirtualRanks, MayClearGradientsInThePasses) {
  Tensors expected;
  std::mutex mutex;
  for (const auto& [processes, to_none] : {std::pair(4, true),
                                           {1, true},
                                           {3, true},
                                           {5, true},
                                           {6, true},
                                           {4, false},
                                           {2, false},
                                           {5, false}}) {
    on_ranks(processes, [&, to_none = to_none](comm::Group& group) {
      Model model(f32_heads(), group, {.virtual_ranks = 4});
      for (int update = 0; update < 3; ++update) {
        for_each_turn({.virtual_ranks = 4}, group, [&](const MicroBatch& each, const Turn& turn) {
          model.begin(each);
          if (each.begins_update()) {
            model->zero_grad(to_none);
          }
          if (turn.virtual_rank == 0) {  // a penalty that not all of them have
            (void)torch::autograd::grad({loss(model, turn)}, {model->left->weight});
          }
          one_pass(model, turn);
        });
        model.end_update();
        const torch::NoGradGuard no_grad;
        for (at::Tensor& parameter : model.parameters()) {
          parameter.sub_(parameter.grad(), 0.01);
        }
      }
      Tensors mine;
      for (const at::Tensor& parameter : model.parameters()) {
        mine.push_back(parameter.grad().clone());
      }
      const std::lock_guard lock(mutex);
      expected = expected.empty() ? mine : expected;
      expect_same(mine, expected, fmt::format("rank {} of {}", group.rank(), group.size()));
    });
  }
}

struct NormedImpl : torch::nn::Module {
  NormedImpl() {
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
    last = register_module("last", torch::nn::Linear(3, 1));
    fill(*this, 2);
  }
  torch::Tensor forward(const torch::Tensor& x) { return last(norm(x)); }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(Normed);

TEST(VirtualRanks, LeaveTheBuffersOfTheFirst) {
  at::Tensor expected;
  {
    Normed alone;  // as virtual rank 0 sees it
    for (int64_t micro = 0; micro < 4; ++micro) {
      alone->forward(input_of({0, micro % 2, false}));
    }
    expected = alone->norm->running_var.clone();
  }
  for (const int processes : {1, 2, 3, 4, 6}) {
    on_ranks(processes, [&](comm::Group& group) {
      DistributedDataParallel model(Normed(), group, {.virtual_ranks = 4});
      for (int update = 0; update < 2; ++update) {
        for_each_turn({.virtual_ranks = 4, .micros = 2},
                      group,
                      [&](const MicroBatch& each, const Turn& turn) {
                        model.begin(each);
                        model(input_of(turn)).sum().backward();
                      });
        model.end_update();
        for (at::Tensor& parameter : model.parameters()) {
          parameter.mutable_grad() = at::Tensor();
        }
      }
      EXPECT_TRUE(model->norm->running_var.equal(expected))
          << processes << " processes, rank " << group.rank();
      EXPECT_EQ(model->norm->num_batches_tracked.item<int64_t>(), 4);
    });
  }
}

/// Its output depends on a buffer that each forward changes.
struct RememberingImpl : torch::nn::Module {
  RememberingImpl() {
    seen = register_buffer("seen", torch::ones({3}));
    last = register_module("last", torch::nn::Linear(3, 1));
    fill(*this, 2);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    at::Tensor y = last(x * seen);
    const torch::NoGradGuard no_grad;
    seen.mul_(0.5).add_(x.mean(0), 0.5);
    return y;
  }
  torch::Tensor seen;
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(Remembering);

TEST(VirtualRanks, BeginAnUpdateWithTheSameBuffers) {
  at::Tensor expected;
  std::mutex mutex;
  for (const int processes : {4, 1, 2, 3, 6}) {
    on_ranks(processes, [&](comm::Group& group) {
      DistributedDataParallel model(Remembering(), group, {.virtual_ranks = 4});
      const VirtualRecipe recipe{.virtual_ranks = 4, .micros = 2};
      for (int update = 0; update < 2; ++update) {
        for (at::Tensor& parameter : model.parameters()) {
          parameter.mutable_grad() = at::Tensor();
        }
        for_each_turn(recipe, group, [&](const MicroBatch& each, const Turn& turn) {
          model.begin(each);
          model(input_of(turn)).sum().backward();
        });
        model.end_update();
      }
      const at::Tensor got = model->last->weight.grad().clone();
      const std::lock_guard lock(mutex);
      expected = expected.defined() ? expected : got;
      EXPECT_TRUE(got.equal(expected)) << processes << " processes, rank " << group.rank();
    });
  }
}

/// A loop that was left amid an update: whoever computed further virtual ranks, those of the first
/// count.
TEST(VirtualRanks, LeaveTheBuffersOfTheFirstWhereAnUpdateIsLeft) {
  at::Tensor expected;
  {
    Normed alone;
    for (int64_t pass = 0; pass < 2; ++pass) {
      alone->forward(input_of({0, 0, true}));
    }
    expected = alone->norm->running_var.clone();
  }
  for (const int processes : {1, 2, 3, 4}) {
    on_ranks(processes, [&](comm::Group& group) {
      DistributedDataParallel model(Normed(), group, {.virtual_ranks = 4});
      for_each_turn({.virtual_ranks = 4}, group, [&](const MicroBatch& each, const Turn& turn) {
        if (each.leaf < 2) {
          model.begin(each);
          model(input_of(turn));
        }
      });
      ddp::Core::for_each(group, [&](ddp::Core& core) { core.abandon_update(); });
      for_each_turn({.virtual_ranks = 4}, group, [&](const MicroBatch& each, const Turn& turn) {
        model.begin(each);
        model(input_of(turn)).sum().backward();
      });
      model.end_update();
      EXPECT_TRUE(model->norm->running_var.equal(expected))
          << processes << " processes, rank " << group.rank();
    });
  }
}

TEST(VirtualRanks, LeaveAFrozenParameterItsGradient) {
  for (const int processes : {1, 2, 4, 6}) {
    on_ranks(processes, [&](comm::Group& group) {
      DistributedDataParallel model(  // a bucket for each parameter
          Normed(),
          group,
          {.first_bucket_bytes = 1, .bucket_cap_bytes = 1, .virtual_ranks = 4});
      const auto update = [&] {
        for_each_turn({.virtual_ranks = 4}, group, [&](const MicroBatch& each, const Turn& turn) {
          model.begin(each);
          model(input_of(turn)).sum().backward();
        });
        model.end_update();
      };
      at::Tensor& weight = model->last->weight;
      update();
      const at::Tensor averaged = weight.grad().clone();  // it lies in its bucket
      weight.requires_grad_(false);
      model->norm->weight.mutable_grad() = at::Tensor();
      model->norm->bias.mutable_grad() = at::Tensor();
      model->last->bias.mutable_grad() = at::Tensor();
      update();
      EXPECT_TRUE(weight.grad().defined() && weight.grad().equal(averaged)) << processes;
      weight.mutable_grad() = torch::full_like(averaged, 3);  // the program's own
      update();
      EXPECT_TRUE(weight.grad().defined() && weight.grad().equal(torch::full_like(averaged, 3)))
          << processes;
    });
  }
}

TEST(VirtualRanksErrors, NormsOverAllRanksNeedAProcessForEach) {
  on_ranks(2, [](comm::Group& group) {
    const auto synced = [&] {
      torch::nn::Sequential net(SyncBatchNorm1d(3));
      convert_sync_batchnorm(net, group);
      return net;
    };
    EXPECT_THAT(
        error_of([&] { DistributedDataParallel model(synced(), group, {.virtual_ranks = 4}); }),
        HasSubstr("0 is a SyncBatchNorm, which needs as many processes as virtual ranks: "
                  "here are 2 processes for 4"));
    EXPECT_NO_THROW(DistributedDataParallel(synced(), group, {.virtual_ranks = 2}));
  });
}

TEST(VirtualRanksErrors, SayWhatAProgramForgot) {
  on_ranks(1, [](comm::Group& group) {
    Model model(f32_heads(), group, {.virtual_ranks = 4});
    EXPECT_THAT(error_of([&] { one_pass(model, {}); }),
                HasSubstr("1 processes compute 4 virtual ranks, and this forward belongs to none"));
    model.eval();
    EXPECT_NO_THROW(loss(model, {}));
    model.train();
    EXPECT_THAT(error_of([&] { model.begin({.leaf = 0, .leaves = 2}); }),
                HasSubstr("expected a micro-batch of 4 virtual ranks"));
    EXPECT_THAT(error_of([&] { (void)model.join(); }),
                HasSubstr("join() needs as many processes as virtual ranks"));
    EXPECT_THAT(
        error_of([&] { model.register_comm_hook([](GradBucket&) -> BucketWork { return {}; }); }),
        HasSubstr("a communication hook of your own needs as many processes"));
  });
  EXPECT_THAT(error_of([] { DdpOptions{.virtual_ranks = -1}.validate(); }),
              HasSubstr("virtual_ranks must not be negative, got -1"));
}

TEST(VirtualRanksErrors, AStepBetweenTwoOfThemIsNamed) {
  on_ranks(1, [](comm::Group& group) {
    Model model(f32_heads(), group, {.virtual_ranks = 2});
    model.begin({.leaf = 0, .leaves = 2});
    one_pass(model, {});
    {
      const torch::NoGradGuard no_grad;
      for (const at::Tensor& parameter : model.parameters()) {
        parameter.mul_(0.5);
      }
    }
    EXPECT_THAT(error_of([&] { model.begin({.leaf = 1, .leaves = 2}); }),
                HasSubstr("Call optimizer.step() after the loop over them"));
  });
}

TEST(VirtualRanksErrors, AStepAfterTheLastOfThemButBeforeTheEndIsNamed) {
  on_ranks(1, [](comm::Group& group) {
    Model model(f32_heads(), group, {.virtual_ranks = 2});
    for (int64_t leaf = 0; leaf < 2; ++leaf) {
      model.begin({.leaf = leaf, .leaves = 2});
      one_pass(model, {leaf});
    }
    {
      const torch::NoGradGuard no_grad;
      model->trunk->weight.mul_(0.5);
    }
    EXPECT_THAT(error_of([&] { model.end_update(); }),
                HasSubstr("Call optimizer.step() after the loop over them"));
  });
}

// As for a discriminator after its own pass, while its generator learns.
TEST(VirtualRanksErrors, AForwardAfterAnUpdateThatOverlapsIsNamed) {
  for (const int processes : {1, 2}) {
    on_ranks(processes, [](comm::Group& group) {
      Model model(f32_heads(), group, {.virtual_ranks = 2});
      optim::SGD optimizer(model, {.lr = 0.1});
      const bool divides = model.divide_step(optimizer, {.overlap_update = true});
      const IndexRange mine = even_part(2, group.size(), group.rank());
      for (int64_t leaf = 0; leaf < mine.size(); ++leaf) {
        model.begin({.leaf = leaf, .leaves = mine.size()});
        one_pass(model, {mine.begin + leaf});
        if (leaf + 1 < mine.size()) {
          (void)model(input_of({}), true, true);
        }
      }
      EXPECT_EQ(divides, group.size() > 1);
      EXPECT_THAT(error_of([&] { (void)model(input_of({}), true, true); }),
                  HasSubstr("leave overlap_update out"));
    });
  }
}

TEST(VirtualRanksErrors, AnEndThatWasForgottenIsNamed) {
  for (const int processes : {1, 2}) {
    on_ranks(processes, [&](comm::Group& group) {
      Model model(f32_heads(), group, {.virtual_ranks = 2});
      const int64_t leaves = 2 / group.size();
      for (int64_t leaf = 0; leaf < leaves; ++leaf) {
        model.begin({.leaf = leaf, .leaves = leaves});
        one_pass(model, {group.rank() * leaves + leaf});
      }
      EXPECT_THAT(error_of([&] { model.begin({.leaf = 0, .leaves = leaves}); }),
                  HasSubstr("Call end_update() after its passes"));
    });
  }
}

TEST(VirtualRanksErrors, RanksAtDifferentBatchesAreNamed) {
  on_ranks(2, [](comm::Group& group) {
    Model model(f32_heads(), group);
    model.begin({.epoch = 2, .update = group.rank() == 0 ? 6 : 7});
    EXPECT_THAT(error_of([&] { one_pass(model, {group.rank()}); }),
                HasSubstr("rank 1: batch 7 of epoch 2, rank 0: 6 of epoch 2"));
  });
}

TEST(Spares, ThatTrainAreTold) {
  on_ranks(2, [](comm::Group& group) {
    Model model(f32_heads(), group, {.virtual_ranks = 1});
    if (group.rank() == 1) {
      EXPECT_THAT(error_of([&] { one_pass(model, {}); }),
                  HasSubstr("rank 1 of 2 is a spare, which makes no passes: here are 1 virtual"));
    }
  });
}

TEST(Spares, ThatDriftAreNamed) {
  on_ranks(3, [](comm::Group& group) {
    Model model(f32_heads(), group, {.virtual_ranks = 2});
    const auto update = [&] {
      if (group.rank() < 2) {
        model.begin({});
        one_pass(model, {group.rank()});
      }
      model.end_update();
    };
    update();
    const torch::NoGradGuard no_step_is_recorded;
    for (at::Tensor& parameter : model.parameters()) {
      parameter.sub_(parameter.grad(), 0.1);
      parameter.mutable_grad() = at::Tensor();
    }
    if (group.rank() == 2) {
      model->trunk->weight.add_(0.5);
    }
    const torch::AutoGradMode passes(true);
    EXPECT_THAT(error_of(update),
                ::testing::AllOf(HasSubstr("1 of 6 parameters differ between ranks"),
                                 HasSubstr("rank 2: trunk.weight[0, 0]")));
  });
}

TEST(Spares, FollowTheScaleOfTheLoss) {
  on_ranks(3, [](comm::Group& group) {
    Model model(f32_heads(), group, {.virtual_ranks = 2});
    optim::GradScaler scaler({.init_scale = 8});
    for (int update = 0; update < 3; ++update) {
      if (group.rank() < 2) {
        model.begin({.update = update});
        scaler.scale(loss(model, {group.rank()})).backward();
      }
      model.end_update();  // compares what the ranks train by
      EXPECT_EQ(optim::loss_scale_of_thread(), 8 >> update) << "rank " << group.rank();
      scaler.update(4 >> update);
    }
  });
}

/// As a generator and a discriminator, whose passes alternate in an update, and mix.
TEST(Spares, FollowSeveralWrappersInTheOrderOfTheirPasses) {
  on_ranks(4, [](comm::Group& group) {
    const TwoHeads one = f32_heads();
    TwoHeads other = f32_heads();
    other->register_module("norm", torch::nn::BatchNorm1d(3));
    other->register_buffer("seen", torch::zeros({2}));
    const DdpOptions options{.first_bucket_bytes = 1,
                             .bucket_cap_bytes = 1,
                             .find_unused_parameters = true,
                             .virtual_ranks = 2};
    Model first(one, group, options);
    Model second(other, group, options);
    for (int update = 0; update < 3; ++update) {
      if (group.rank() < 2) {
        first.begin({.epoch = 1, .update = update});
        second.begin({.epoch = 1, .update = update});
        second->named_buffers()["seen"].fill_(update + 3 * group.rank());
        loss(second, {group.rank(), update}, true, false).backward();
        loss(first, {group.rank(), update}).backward();
        loss(second, {group.rank(), update + 7}, false, true).backward();
        (loss(first, {group.rank(), update + 3}) * loss(second, {group.rank()})).backward();
      }
      first.end_update();
      second.end_update();
      for (Model* const model : {&first, &second}) {
        for (const at::Tensor& parameter : model->parameters()) {
          if (parameter.grad().defined()) {  // no pass reaches the norm
            const at::Tensor last = comm::all_gather(parameter.grad(), group).back();
            EXPECT_TRUE(last.equal(parameter.grad())) << "rank " << group.rank();
            EXPECT_GT(last.abs().sum().item<double>(), 0);
            parameter.mutable_grad() = at::Tensor();
          }
        }
      }
      EXPECT_EQ(second->named_buffers()["seen"][0].item<double>(), update) << "virtual rank 0's";
    }
  });
}

TEST(VirtualRanksErrors, DifferentNumbersOfPassesAreNamed) {
  const auto passes = [](Model& model, int first, int second) {
    model.begin({.leaf = 0, .leaves = 2});
    for (int i = 0; i < first; ++i) {
      one_pass(model, {});
    }
    model.begin({.leaf = 1, .leaves = 2});
    for (int i = 0; i < second; ++i) {
      one_pass(model, {1});
    }
    model.end_update();
  };
  on_ranks(1, [&](comm::Group& group) {
    const auto model = [&] { return Model(f32_heads(), group, {.virtual_ranks = 2}); };
    Model fewer = model();
    EXPECT_THAT(error_of([&] { passes(fewer, 1, 2); }),
                HasSubstr("made different numbers of backward passes in one update"));
    Model more = model();
    EXPECT_THAT(
        error_of([&] { passes(more, 2, 1); }),
        HasSubstr("made 1 averaged backward passes in this update, the ones before made 2"));
    Model gathers = model();
    EXPECT_THAT(error_of([&] {
                  gathers.begin({.leaf = 0, .leaves = 2});
                  one_pass(gathers, {});
                  const auto local = gathers.no_sync();
                  one_pass(gathers, {});
                  gathers.begin({.leaf = 1, .leaves = 2});
                }),
                HasSubstr("its last pass was under no_sync()"));
  });
}

}  // namespace
}  // namespace argosy::parallel
