#include "argosy/fleet/strategy.h"

#include <fmt/format.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& json) {
  return test::error_text<ConfigError>([&] { (void)DistributedStrategy::from_json(json); });
}

TEST(Strategy, DefaultsArePaddlesAndValid) {
  const DistributedStrategy strategy;
  strategy.validate();
  EXPECT_EQ(strategy.fuse_grad_size_in_MB, 32);
  EXPECT_EQ(strategy.last_comm_group_size_MB, 1);
  EXPECT_FALSE(strategy.find_unused_parameters);
}

TEST(Strategy, JsonRoundTrip) {
  DistributedStrategy strategy;
  strategy.find_unused_parameters = true;
  strategy.fuse_grad_size_in_MB = 8.5;
  strategy.memory_format = engine::MemoryFormat::kChannelsLast;
  strategy.hybrid_configs = {{"dp_degree", 4}};
  const DistributedStrategy back = DistributedStrategy::from_json(strategy.to_json());
  EXPECT_TRUE(back.find_unused_parameters);
  EXPECT_EQ(back.fuse_grad_size_in_MB, 8.5);
  EXPECT_EQ(back.memory_format, engine::MemoryFormat::kChannelsLast);
  EXPECT_EQ(back.hybrid_configs.at("dp_degree"), 4);
}

TEST(Strategy, SettingsOfATogglePassThroughJson) {
  DistributedStrategy strategy;
  strategy.lars_configs.exclude_from_weight_decay = {"bias"};
  strategy.lamb_configs.lamb_weight_decay = 0.5;
  strategy.gradient_merge = true;
  strategy.amp_configs = {.init_loss_scaling = 8, .incr_every_n_steps = 5};
  strategy.gradient_merge_configs = {.k_steps = 4, .avg = false};
  const DistributedStrategy back = DistributedStrategy::from_json(strategy.to_json());
  EXPECT_EQ(back.to_json(), strategy.to_json());
  EXPECT_EQ(back.lars_configs.exclude_from_weight_decay.at(0), "bias");
  EXPECT_EQ(back.lamb_configs.lamb_weight_decay, 0.5);
  EXPECT_EQ(back.gradient_merge_configs.k_steps, 4);
  EXPECT_EQ(back.amp_configs.dtype, "bfloat16");
  EXPECT_EQ(back.amp_configs.init_loss_scaling, 8);
  EXPECT_EQ(back.amp_configs.incr_every_n_steps, 5);
  EXPECT_FALSE(back.gradient_merge_configs.avg);
}

TEST(Strategy, SettingsWhoseToggleIsOffAreIdle) {
  DistributedStrategy strategy{.gradient_merge_configs = {.k_steps = 4},
                               .amp = true,
                               .amp_configs = {.init_loss_scaling = 8},
                               .sharding_configs = {.stage = 2}};
  EXPECT_THAT(strategy.idle_configs(),
              testing::ElementsAre("gradient_merge_configs", "sharding_configs"));
  strategy.hybrid_configs = {{"sharding", 2}};
  EXPECT_THAT(strategy.idle_configs(), testing::ElementsAre("gradient_merge_configs"));
  strategy.gradient_merge = true;
  EXPECT_TRUE(strategy.idle_configs().empty());
}

TEST(Strategy, SettingsThatMakeNoSenseAreNamed) {
  EXPECT_EQ(refusal(R"({"gradient_merge_configs": {"k_step": 4}})"),
            "[fleet.DistributedStrategy] there is no field of gradient_merge_configs \"k_step\". "
            "Did you mean \"k_steps\"?");
  EXPECT_NE(refusal(R"({"gradient_merge_configs": {"k_steps": 0}})").find("at least 1, got 0"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"gradient_merge_configs": {"order": "late"}})")
                .find("order: expected \"local\" or \"reduced\", got \"late\""),
            std::string::npos);
  EXPECT_NE(refusal(R"({"lars_configs": {"lars_coeff": "x"}})")
                .find("lars_configs.lars_coeff: expected a number"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"lars": true, "lamb": true})").find("lars and lamb exclude each other"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"gradient_merge": true, "overlap_update": true})").find("gradients are"),
            std::string::npos);
}

TEST(Strategy, AToggleThatIsNotSupportedYetIsAnError) {
  EXPECT_EQ(
      refusal(R"({"pipeline": true})"),
      "[fleet.DistributedStrategy] pipeline is not supported. Leave it false: nothing does it "
      "yet. See docs/reference/coming_from_paddle.md#distributedstrategy");
  EXPECT_EQ(refusal(R"({"pipeline": false})"), "nothing was thrown");
}

TEST(Strategy, RecomputeActsOrIsRefused) {
  EXPECT_EQ(refusal(R"({"recompute": true, "recompute_configs": {"checkpoints": ["a.*"]}})"),
            "nothing was thrown");
  EXPECT_THAT(refusal(R"({"recompute_configs": {"checkpoints": ["a"]}})"),
              HasSubstr("checkpoints has names, and recompute is off"));
  EXPECT_THAT(refusal(R"({"recompute_configs": {"enable_offload": true}})"),
              HasSubstr("recompute_configs.enable_offload is not supported"));
  EXPECT_THAT(refusal(R"({"recompute_configs": {"checkpoint_shape": [1, 2]}})"),
              HasSubstr("recompute_configs.checkpoint_shape is not supported"));
}

TEST(Strategy, PureTypesNeedDividedParameters) {
  const char* const sharding = R"("amp": true, "sharding": true)";
  EXPECT_EQ(
      refusal(fmt::format(
          R"({{{}, "amp_configs": {{"use_pure_bf16": true, "master_grad": true}}}})", sharding)),
      "nothing was thrown");
  for (const char* rest : {R"("amp": true)",
                           R"("sharding": true)",
                           R"("amp": true, "sharding": true, "sharding_configs": {"stage": 2})"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{{}, "amp_configs": {{"use_pure_bf16": true}}}})", rest)),
                HasSubstr("needs amp = true and sharding of stage 3"));
  }
  EXPECT_THAT(refusal(R"({"amp_configs": {"master_grad": true}})"),
              HasSubstr("master_grad is for"));
  EXPECT_THAT(refusal(R"({"sharding_configs": {"offload_folder": "/tmp"}})"),
              HasSubstr("offload_folder is for sharding of stage 3"));
}

TEST(Strategy, SettingsOfAmpThatNothingStandsBehindAreErrors) {
  EXPECT_EQ(refusal(R"({"amp": true, "amp_configs": {"decr_every_n_nan_or_inf": 2}})"),
            "[fleet.DistributedStrategy] amp_configs.decr_every_n_nan_or_inf is not supported. "
            "Leave it 1: each update that is not finite lowers the scale. See "
            "docs/reference/coming_from_paddle.md#distributedstrategy");
  for (const char* setting : {R"("use_dynamic_loss_scaling": false)",
                              R"("custom_white_list": ["elementwise_add"])",
                              R"("custom_black_list": ["matmul_v2"])",
                              R"("custom_black_varnames": ["w"])",
                              R"("use_fp16_guard": false)",
                              R"("use_optimizer_fp16": true)"}) {
    const std::string text = refusal(fmt::format(R"({{"amp_configs": {{{}}}}})", setting));
    const std::string name = std::string(setting).substr(1, std::string(setting).find(':') - 2);
    EXPECT_NE(text.find("amp_configs." + name + " is not supported"), std::string::npos) << text;
    EXPECT_NE(text.find("coming_from_paddle.md#distributedstrategy"), std::string::npos) << text;
  }
}

TEST(Strategy, NumbersOfAmpOutOfRangeAreNamed) {
  const auto wrong = [](const char* setting) {
    return refusal(fmt::format(R"({{"amp_configs": {{{}}}}})", setting));
  };
  EXPECT_EQ(wrong(R"("decr_ratio": 1)"),
            "[fleet.DistributedStrategy] amp_configs.decr_ratio: expected a number between 0 and "
            "1, got 1");
  EXPECT_NE(wrong(R"("incr_ratio": 1)").find("incr_ratio: expected more than 1"),
            std::string::npos);
  EXPECT_NE(wrong(R"("init_loss_scaling": 1e39)").find("init_loss_scaling: expected a positive"),
            std::string::npos);
  EXPECT_NE(wrong(R"("incr_every_n_steps": 0)").find("incr_every_n_steps: expected at least 1"),
            std::string::npos);
  EXPECT_NE(wrong(R"("dtype": "int8")").find(R"("bfloat16" or "float16", got "int8")"),
            std::string::npos);
  EXPECT_NE(wrong(R"("dtype": 16)").find("amp_configs.dtype: expected a text, got 16"),
            std::string::npos);
  const std::string half = R"({"amp": true, "amp_configs": {"dtype": "float16"}, )";
  EXPECT_NE(refusal(half + R"("overlap_update": true})").find("amp in float16 excludes"),
            std::string::npos);
  EXPECT_NE(refusal(half + R"("gradient_merge": true})").find("amp in float16 excludes"),
            std::string::npos);
  EXPECT_EQ(refusal(R"({"amp": true, "overlap_update": true})"), "nothing was thrown");
}

TEST(Strategy, EachToggleThatNothingStandsBehindNamesThePageThatSaysWhatThereIs) {
  for (const char* name : {"pipeline",
                           "tensor_parallel",
                           "use_hierarchical_allreduce",
                           "elastic",
                           "auto_search",
                           "asp",
                           "qat",
                           "heter_ccl_mode"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"{}": true}})", name)),
                AllOf(HasSubstr(name),
                      HasSubstr("is not supported"),
                      HasSubstr("docs/reference/coming_from_paddle.md#distributedstrategy")));
  }
}

TEST(Strategy, AnUnknownToggleNamesTheNearest) {
  EXPECT_EQ(
      refusal(R"({"find_unused_paramters": true})"),
      "[fleet.DistributedStrategy] there is no toggle \"find_unused_paramters\". Did you mean "
      "\"find_unused_parameters\"?");
  EXPECT_NE(
      refusal(R"({"zzz": true})").find("known are: find_unused_parameters, fuse_grad_size_in_MB"),
      std::string::npos);
}

TEST(Strategy, AnUnknownAxisNamesTheNearest) {
  EXPECT_EQ(
      refusal(R"({"hybrid_configs": {"dp_degre": 1}})"),
      "[fleet.DistributedStrategy] there is no axis of hybrid_configs \"dp_degre\". Did you mean "
      "\"dp_degree\"?");
  EXPECT_EQ(refusal(R"({"hybrid_configs": {"mp_degree": 1}})"), "nothing was thrown");
}

TEST(Strategy, WrongTypesAndSizesAreNamed) {
  EXPECT_NE(refusal(R"({"amp": 1})").find("amp: expected true or false, got 1"), std::string::npos);
  EXPECT_NE(refusal(R"({"fuse_grad_size_in_MB": 0})").find("expected megabytes above 0, got 0"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"fuse_grad_size_in_MB": "x"})")
                .find("fuse_grad_size_in_MB: expected a number, got"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"memory_format": "nhwc"})").find(R"(or "channels_last", got "nhwc")"),
            std::string::npos);
  EXPECT_NE(refusal("[1]").find("expected a JSON object"), std::string::npos);
  EXPECT_NE(refusal("{").find("expected a JSON object"), std::string::npos);
}

TEST(Strategy, OnlyDataParallelDegrees) {
  EXPECT_THAT(
      refusal(R"({"hybrid_configs": {"mp_degree": 2}})"),
      AllOf(HasSubstr("hybrid_configs.mp_degree = 2 is not supported. Leave it 1: dp and sharding"),
            HasSubstr("docs/reference/coming_from_paddle.md#distributedstrategy")));
  EXPECT_EQ(refusal(R"({"hybrid_configs": {"dp_degree": -1, "mp_degree": 1}})"),
            "nothing was thrown");
  EXPECT_NE(refusal(R"({"hybrid_configs": 1})").find("expected an object"), std::string::npos);
}

TEST(Strategy, WaysToDivideAnUpdateNeedOne) {
  EXPECT_NE(refusal(R"({"share_parameters": true, "divide_update": false})").find("which is off"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"overlap_update": true, "bf16_allreduce": true})").find("excludes"),
            std::string::npos);
  EXPECT_EQ(refusal(R"({"overlap_update": true, "share_parameters": true})"), "nothing was thrown");
  EXPECT_NE(refusal(R"({"scatter_gradients": true, "divide_update": false})").find("which is off"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"scatter_gradients": true, "overlap_update": true})").find("excludes"),
            std::string::npos);
}

TEST(Strategy, HalfPrecisionsExcludeEachOther) {
  EXPECT_NE(refusal(R"({"fp16_allreduce": true, "bf16_allreduce": true})").find("exclude"),
            std::string::npos);
}

}  // namespace
}  // namespace argosy::fleet
