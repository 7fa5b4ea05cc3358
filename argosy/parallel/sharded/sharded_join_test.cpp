/// A join() where ranks divide parameters, gradients or state: who has finished serves the others.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "argosy/optim/grad_scaler.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"

namespace argosy::parallel {
namespace {

using testing::Blocks;
using testing::error_of;
using testing::expect_same_bits;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::ShardedBlocks;
using testing::small_units;
using testing::values;

struct UnevenCase {
  std::string name{};
  std::vector<int> batches{};  // of each rank
  DdpOptions options{};
  DivideOptions divide{};
  JoinOptions join{};
  bool keeps_zeros = false;  // zero_grad() leaves them
  int local = 0;             // passes before an update, under no_sync()
  bool accumulates = false;  // averages are added to every other time
  int silent = -1;           // a rank whose local passes have gradients of zero
};

/// One of the two models that are compared, and its training in a join.
struct Joined {
  Joined(const comm::Group& group, const DdpOptions& options, const DivideOptions& divide)
      : model(Blocks(), group, options),
        optimizer(optim::AdamW(model,
                               {.lr = 0.03, .grad_clip = optim::ClipGradByGlobalNorm(0.1)},
                               {{.names = {"*.bias"}, .lr_scale = 3, .weight_decay = 0.0}})),
        divided(model.divide_step(optimizer, divide)) {}
  void backward(int rank, int step, double factor = 1) {
    (model(values({4, 3}, rank + 10.0 * step, at::kFloat)).square().mean() * factor).backward();
  }
  void train(const UnevenCase& c, int rank) {
    auto join = model.join(c.join);
    for (int step = 0; step < c.batches[static_cast<size_t>(rank)]; ++step) {
      for (int pass = 0; pass < c.local; ++pass) {
        const NoSync apart = model.no_sync();
        backward(rank, step + 100 * (pass + 1), rank == c.silent ? 0 : 1);
      }
      backward(rank, step);
      optimizer.set_lr(0.03 / (step + 1));
      optimizer.step();
      if (!c.accumulates || step % 2 == 1) {
        optimizer.zero_grad({.set_to_none = !c.keeps_zeros});
      }
    }
    join.finish();
  }
  void step(int rank, int step) {
    optimizer.zero_grad();
    backward(rank, step);
    optimizer.step();
  }
  ShardedBlocks model;
  optim::Optimizer optimizer;
  bool divided;
};

void expect_bits_of_ddp(const UnevenCase& c, const comm::Group& group) {
  DdpOptions plain_options = c.options;
  plain_options.shard.reset();
  plain_options.shared_memory = false;
  plain_options.check_drift = false;  // who stopped early has other rates
  Joined plain(group, plain_options, {});
  Joined sharded(group, c.options, c.divide);
  ASSERT_TRUE(sharded.divided);
  for (const int round : {0, 1}) {
    plain.train(c, group.rank());
    sharded.train(c, group.rank());
    const auto compare = [&](const std::string& what, bool counts) {
      for (size_t i = 0; i < plain.model.parameters().size(); ++i) {
        const at::Tensor mine = sharded.model.parameters()[i].detach().clone();
        if (counts) {
          expect_same_bits(mine,
                           plain.model.parameters()[i],
                           c.name + what + ", parameter " + std::to_string(i));
        }
      }
    };
    compare(" after the join", round == 0);
    // Those who stopped last have the state that counts, with whose steps it goes on.
    plain.step(group.rank(), 50);
    sharded.step(group.rank(), 50);
    const int most = *std::max_element(c.batches.begin(), c.batches.end());
    const bool was_last = c.batches[static_cast<size_t>(group.rank())] == most;
    compare(" and a step", round == 0 && was_last);
  }
}

void expect_bits_of_ddp(const UnevenCase& c) {
  on_ranks(static_cast<int>(c.batches.size()),
           [&](comm::Group& group) { expect_bits_of_ddp(c, group); });
}

std::vector<UnevenCase> uneven_cases(const std::string& name,
                                     const DdpOptions& options,
                                     const DivideOptions& divide) {
  std::vector<UnevenCase> cases;
  for (const std::vector<int>& batches :
       {std::vector{1, 4}, {3, 0}, {3, 5, 0}, {0, 2, 4}, {2, 2, 2}, {1, 1, 3}}) {
    cases.push_back({.name = name, .batches = batches, .options = options, .divide = divide});
  }
  UnevenCase base{.name = name, .batches = {1, 4, 2}, .options = options, .divide = divide};
  cases.push_back(base);
  cases.back().name += " by who is left";
  cases.back().join.divide_by_initial_world_size = false;
  cases.push_back(base);
  cases.back().name += " with zeros";
  cases.back().keeps_zeros = true;
  cases.push_back(base);
  cases.back().name += " with local passes";
  cases.back().local = 2;
  cases.push_back(cases.back());
  cases.back().name += " of which one rank's are zero";
  cases.back().silent = 1;
  cases.push_back(base);
  cases.back().name += " which accumulates";
  cases.back().accumulates = true;
  cases.push_back(base);
  cases.back().name += " which searches";
  cases.back().options.find_unused_parameters = true;
  return cases;
}

DdpOptions in_small_buckets() {
  return {.first_bucket_bytes = 1024, .bucket_cap_bytes = 4096, .shared_memory = false};
}

TEST(ShardedJoin, HasTheBitsOfRanksThatHaveEverything) {
  for (const UnevenCase& c : uneven_cases("stage 3", {.shard = small_units()}, {})) {
    expect_bits_of_ddp(c);
  }
}

TEST(ShardedJoin, HasThemWhereGradientsAreDivided) {
  for (const UnevenCase& c :
       uneven_cases("stage 2", in_small_buckets(), {.scatter_gradients = true})) {
    expect_bits_of_ddp(c);
  }
}

TEST(ShardedJoin, HasThemWhereStateIsDivided) {
  for (const UnevenCase& c : uneven_cases("stage 1", in_small_buckets(), {.divide_state = true})) {
    expect_bits_of_ddp(c);
  }
}

TEST(ShardedJoin, HasThemWhereAFewRanksDivideParameters) {
  ShardOptions shard = small_units();
  shard.degree = 2;
  for (const std::vector<int>& batches : {std::vector{1, 4, 2, 0}, {0, 0, 2, 3}}) {
    expect_bits_of_ddp({.name = "degree 2", .batches = batches, .options = {.shard = shard}});
  }
}

TEST(ShardedJoin, HasThemOverSocketsAndTwoHosts) {
  ShardOptions shard = small_units();
  for (const int degree : {0, 2}) {
    shard.degree = degree;
    for (const auto& [backend, batches] :
         {std::pair("gloo", std::vector{1, 4}), {"hierarchical", {3, 1, 0, 4}}}) {
      const UnevenCase c{.name = backend, .batches = batches, .options = {.shard = shard}};
      for (const test::RankOutcome& outcome : testing::try_ranks_over(
               backend, [&](const comm::Group& group) { expect_bits_of_ddp(c, group); })) {
        EXPECT_EQ(outcome.error, "") << backend;
      }
    }
  }
}

TEST(ShardedJoin, RefusesWhatItCannotDo) {
  on_ranks(2, [](comm::Group& group) {
    ShardedBlocks model(Blocks(), group, {.shard = small_units()});
    EXPECT_THAT(error_of([&] { auto join = model.join(); }),
                HasSubstr("divide_step(): expected one, got 0"));
    Joined both(group, {.shard = small_units()}, {});
    optim::GradScaler scaler;
    {
      auto join = both.model.join();
      EXPECT_THAT(error_of([&] {
                    scaler.scale(both.model(values({4, 3}, 1, at::kFloat)).sum()).backward();
                  }),
                  HasSubstr("a GradScaler asks all ranks"));
    }
    (void)both.model.parameters()[0].sum();  // nobody is told of its gather any longer
  });
}

}  // namespace
}  // namespace argosy::parallel
