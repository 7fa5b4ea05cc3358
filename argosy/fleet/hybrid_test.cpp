#include "argosy/fleet/hybrid.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/weights_digest.h"
#include "argosy/comm/collectives.h"
#include "argosy/fleet/fleet.h"
#include "argosy/fleet/fleet_test_support.h"
#include "argosy/optim/adam.h"
#include "argosy/parallel/sharded/memory_pool.h"

#include "tests/support/error_text.h"

namespace argosy::fleet {
namespace {

using parallel::MeshAxis;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<MeshAxis> axes_of(const DistributedStrategy& strategy) {
  strategy.validate();
  std::vector<MeshAxis> axes = mesh_axes(strategy);
  std::erase_if(axes, [](const MeshAxis& axis) { return axis.size == 1; });
  return axes;
}

TEST(Hybrid, DpIsWhatTheOthersLeave) {
  EXPECT_THAT(axes_of({}), ElementsAre(MeshAxis{"dp", -1}));
  EXPECT_THAT(axes_of({.hybrid_configs = {{"sharding_degree", 2}}}),
              ElementsAre(MeshAxis{"dp", -1}, MeshAxis{"sharding", 2}));
  EXPECT_THAT(axes_of({.hybrid_configs = {{"dp_degree", -1}, {"sharding_degree", 2}}}),
              ElementsAre(MeshAxis{"dp", -1}, MeshAxis{"sharding", 2}))
      << "Paddle leaves sharding out of what -1 is";
  EXPECT_THAT(axes_of({.hybrid_configs = {{"dp", 2}, {"sharding", -1}}}),
              ElementsAre(MeshAxis{"dp", 2}, MeshAxis{"sharding", -1}));
  EXPECT_THAT(axes_of({.sharding = true}), ElementsAre(MeshAxis{"sharding", -1}));
  EXPECT_THAT(axes_of({.hybrid_configs = {{"dp", 2}}, .sharding = true}),
              ElementsAre(MeshAxis{"dp", 2}, MeshAxis{"sharding", -1}));
  DistributedStrategy other{.hybrid_configs = {{"sharding", 2}}};
  other.hybrid_order = {"sharding", "pp", "dp", "mp", "sep"};
  EXPECT_THAT(axes_of(other), ElementsAre(MeshAxis{"sharding", 2}, MeshAxis{"dp", -1}));
}

TEST(Hybrid, TrapsAreErrors) {
  const auto refusal = [](DistributedStrategy strategy) {
    return test::error_text<Error>([&] { strategy.validate(); });
  };
  EXPECT_THAT(refusal({.hybrid_configs = {{"dp", 2}, {"dp_degree", 2}}}),
              HasSubstr("dp and dp_degree, which are the same"));
  EXPECT_THAT(refusal({.hybrid_configs = {{"dp", -1}, {"sharding", -1}}}),
              HasSubstr("only one axis can be -1"));
  EXPECT_THAT(refusal({.hybrid_configs = {{"sharding", 0}}}),
              HasSubstr("hybrid_configs.sharding: expected a number of ranks, or -1"));
  EXPECT_THAT(refusal({.hybrid_configs = {{"mp_degree", 2}}}),
              HasSubstr("hybrid_configs.mp_degree = 2 is not supported. Leave it 1"));
  DistributedStrategy twice;
  twice.hybrid_order = {"dp", "dp", "sharding", "sep", "mp"};
  EXPECT_THAT(
      refusal(twice),
      HasSubstr("hybrid_order: expected each of dp, pp, sharding, sep, mp once, got dp, dp"));
  EXPECT_THAT(refusal({.share_parameters = true, .sharding = true}),
              HasSubstr("sharding excludes share_parameters"));
  EXPECT_THAT(refusal({.sharding = true, .sharding_configs = {.stage = 4}}),
              HasSubstr("sharding_configs.stage: expected 1, 2 or 3, got 4"));
}

TEST(Hybrid, DegreesThatDoNotMakeTheNumberOfRanksAreRefused) {
  EXPECT_THAT(test::error_text<Error>([] {
                init({.hybrid_configs = {{"dp_degree", 3}}});
              }),
              HasSubstr("hybrid_configs: "));
  EXPECT_FALSE(is_initialized());
}

TEST(Hybrid, SpeaksPaddlesWords) {
  run_job(4,
          [](const std::string& /*folder*/) {
            const HybridCommunicateGroup hcg = get_hybrid_communicate_group();
            const int rank = worker_index();
            EXPECT_EQ(hcg.get_parallel_mode(), ParallelMode::kShardingParallel);
            EXPECT_EQ(hcg.get_global_rank(), rank);
            EXPECT_EQ(hcg.get_data_parallel_world_size(), 2);
            EXPECT_EQ(hcg.get_data_parallel_rank(), rank / 2);
            EXPECT_EQ(hcg.get_data_parallel_group_src_rank(), rank % 2);
            EXPECT_EQ(hcg.get_sharding_parallel_rank(), rank % 2);
            EXPECT_EQ(hcg.get_sharding_parallel_group().size(), 2);
            EXPECT_EQ(hcg.get_sharding_parallel_group_src_rank(), rank / 2 * 2);
            EXPECT_EQ(hcg.get_model_parallel_world_size(), 1);
            EXPECT_EQ(hcg.get_stage_id(), 0);
            EXPECT_TRUE(hcg.is_first_stage() && hcg.is_last_stage());
            EXPECT_EQ(hcg.get_check_parallel_group().rank(), rank % 2);
            EXPECT_EQ(hcg.get_check_parallel_group(/*sharding=*/true).rank(), rank / 2);
            EXPECT_EQ(hcg.get_dp_sep_parallel_group().rank(), rank / 2);
            EXPECT_EQ(hcg.get_pp_mp_parallel_group().size(), 1);
            EXPECT_EQ(mesh().size("sharding"), 2);
          },
          {.hybrid_configs = {{"dp_degree", 2}, {"sharding_degree", 2}}});
}

struct LayeredImpl : torch::nn::Module {
  LayeredImpl() {
    layers = register_module("layers", torch::nn::ModuleList());
    for (int i = 0; i < 3; ++i) {
      layers->push_back(torch::nn::Linear(40, 40));
    }
    const torch::NoGradGuard no_grad;
    double seed = 0;
    for (at::Tensor& parameter : parameters()) {
      parameter.copy_((at::arange(parameter.numel()) * 0.37 + ++seed).sin().view_as(parameter) / 6);
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& layer : *layers) {
      x = layer->as<torch::nn::Linear>()->forward(x).tanh();
    }
    return x;
  }
  torch::nn::ModuleList layers{nullptr};
};
TORCH_MODULE(Layered);

/// The hash of the weights that four ranks come to.
std::string trained_by(const DistributedStrategy& strategy) {
  const test::TempDir results;
  const std::string file = (results.path() / "weights.safetensors").string();
  run_job(
      4,
      [&](const std::string& /*folder*/) {
        auto model = distributed_model(Layered());
        auto optimizer = distributed_optimizer(
            optim::AdamW(model, {.lr = 0.01, .grad_clip = optim::ClipGradByGlobalNorm(0.05)}));
        for (int step = 0; step < 4; ++step) {
          const at::Tensor x =
              (at::arange(120) * (1 + worker_index()) * 0.1 + step).sin().view({3, 40});
          model(x).square().sum().backward();
          optimizer.step();
          optimizer.zero_grad();
        }
        save(model, file);
      },
      strategy);
  return checkpoint::weights_hash(checkpoint::read_weights(file));
}

TEST(Hybrid, AllWaysOfShardingComeToTheSameBits) {
  const std::string plain = trained_by({});
  EXPECT_EQ(trained_by({.sharding = true}), plain);
  EXPECT_EQ(trained_by({.sharding = true, .sharding_configs = {.unit_bytes = 0}}), plain);
  EXPECT_EQ(trained_by({.sharding = true, .sharding_configs = {.stage = 2}}), plain);
  DistributedStrategy hybrid{.hybrid_configs = {{"dp", 2}, {"sharding", 2}},
                             .sharding_configs = {.unit_bytes = 0}};
  for (const int64_t stage : {1, 2, 3}) {
    hybrid.sharding_configs.stage = stage;
    EXPECT_EQ(trained_by(hybrid), plain) << stage;
  }
  hybrid.hybrid_order = {"sharding", "pp", "dp", "sep", "mp"};
  EXPECT_EQ(trained_by(hybrid), plain) << "in another order";
}

/// Both orders of the sums, which differ in their last bits.
TEST(Hybrid, MergedGradientsHaveTheBitsInEachOrder) {
  std::vector<std::string> plain;
  for (const char* const order : {"local", "reduced"}) {
    DistributedStrategy merged{.gradient_merge = true,
                               .gradient_merge_configs = {.k_steps = 2, .order = order}};
    plain.push_back(trained_by(merged));
    for (const int64_t stage : {1, 2, 3}) {
      merged.hybrid_configs = {{"dp", 2}, {"sharding", 2}};
      merged.sharding_configs = {.stage = stage, .unit_bytes = 0};
      EXPECT_EQ(trained_by(merged), plain.back()) << order << ' ' << stage;
    }
  }
  EXPECT_NE(plain[0], plain[1]);
}

TEST(Hybrid, ParametersAreDividedAsTheMeshSays) {
  DistributedStrategy strategy{.hybrid_configs = {{"dp", 2}, {"sharding", 2}}};
  strategy.hybrid_order = {"sharding", "pp", "dp", "sep", "mp"};
  run_job(
      4,
      [](const std::string& /*folder*/) {
        auto model = distributed_model(Layered());
        const at::Tensor weight = model.parameters().front();
        const int64_t mine = parallel::sharded::ShardedMemory::of(weight)->part_of(weight).numel();
        std::vector<int64_t> all;
        for (const at::Tensor& each : comm::all_gather(at::full({1}, mine, at::kLong), group())) {
          all.push_back(each.item<int64_t>());
        }
        EXPECT_EQ(all[0], all[1]) << "ranks along dp have the same part";
        EXPECT_EQ(all[2], all[3]);
        EXPECT_NE(all[0], all[2]);
      },
      strategy);
}

}  // namespace
}  // namespace argosy::fleet
