#include "argosy/text/models/gpt_memory.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/deferred.h"
#include "argosy/engine/memory_count.h"
#include "argosy/optim/adam.h"
#include "argosy/parallel/estimate.h"
#include "argosy/parallel/recompute.h"
#include "argosy/text/models/gpt.h"

#include "tests/support/error_text.h"

namespace argosy::text {
namespace {

constexpr double kWithin = 0.03;

struct StepCase {
  std::string model{};
  StepShape shape{};
};

/// What libtorch's allocator has handed out at most in a step, when all steps are alike.
int64_t counted(const StepCase& step, const GptOptions& options) {
  engine::count_memory();
  const int64_t before = engine::memory_count().now;
  Gpt gpt(options);
  if (step.shape.recompute) {
    gpt->set_block_runner(
        [](const GptBlock& block, const at::Tensor& x) { return parallel::recompute(block, x); });
  }
  optim::Optimizer optimizer = optim::AdamW(gpt, {.lr = 1e-3});
  const at::Tensor tokens = at::zeros(
      {step.shape.sequences, step.shape.tokens == 0 ? options.context : step.shape.tokens},
      at::kLong);
  for (int i = 0; i < 3; ++i) {
    engine::reset_memory_count();
    {
      at::Tensor loss;
      {
        const engine::Autocast precision({.dtype = at::kBFloat16, .enabled = step.shape.bf16});
        loss = gpt->loss(tokens, tokens);
      }
      loss.backward();
    }
    optimizer.step();
    optimizer.zero_grad();
  }
  return engine::memory_count().most - before;
}

TEST(GptMemory, TheFormulaIsWhatTheAllocatorCounts) {
  const std::string wide = "vocab_size=300,layers=4,width=128,heads=4,context=128";
  const std::string tokens = "vocab_size=9000,layers=2,width=96,heads=3,context=128";
  for (const StepCase& step : {StepCase{"gpt:" + wide, {.sequences = 1}},
                               {"gpt:" + wide, {.sequences = 4}},
                               {"gpt:" + wide, {.sequences = 4, .bf16 = true}},
                               {"gpt:" + wide, {.sequences = 4, .recompute = true}},
                               {"gpt:" + wide, {.sequences = 4, .bf16 = true, .recompute = true}},
                               {"gpt:" + wide + ",bias=no,tied=no", {.sequences = 3, .tokens = 50}},
                               {"llama:" + wide, {.sequences = 4}},
                               {"llama:" + wide + ",kv_heads=2", {.sequences = 6}},
                               {"llama:" + wide + ",kv_heads=2", {.sequences = 6, .bf16 = true}},
                               {"gpt:" + tokens, {.sequences = 1}},
                               {"gpt:" + tokens, {.sequences = 4}},
                               {"gpt:" + tokens, {.sequences = 4, .bf16 = true}},
                               {"llama:" + tokens, {.sequences = 4, .bf16 = true}},
                               {"llama:" + tokens, {.sequences = 4, .recompute = true}}}) {
    const GptOptions options = gpt_options(step.model);
    const parallel::MemoryEstimate estimate = parallel::estimate_memory(
        *engine::deferred<Gpt>(options), step_memory(options, step.shape), {.ranks = 1});
    const int64_t most = counted(step, options);
    EXPECT_NEAR(static_cast<double>(estimate.most()) / static_cast<double>(most), 1, kWithin)
        << step.model << ", " << step.shape.sequences << " sequences"
        << (step.shape.bf16 ? ", bf16" : "") << (step.shape.recompute ? ", recompute" : "") << ": "
        << estimate.most() << " in " << estimate.moment << ", counted " << most;
  }
}

/// As the formula has it.
TEST(GptMemory, ABlockThatIsComputedAgainLeavesOutItsLastProduct) {
  for (const bool bf16 : {false, true}) {
    Gpt gpt(gpt_options("gpt:vocab_size=50,layers=1,width=64,heads=2,context=16"));
    std::vector<bool> has_memory;
    gpt->set_block_runner([&](const GptBlock& block, const at::Tensor& x) {
      const auto call = [&has_memory, block = GptBlock(block)](const at::Tensor& y) mutable {
        at::Tensor out = block->forward(y);
        has_memory.push_back(out.storage().data() != nullptr);
        return out;
      };
      return parallel::recompute(call, x);
    });
    at::Tensor loss;
    {
      const engine::Autocast precision({.dtype = at::kBFloat16, .enabled = bf16});
      loss = gpt->loss(at::zeros({2, 16}, at::kLong), at::zeros({2, 16}, at::kLong));
    }
    loss.backward();
    EXPECT_EQ(has_memory, (std::vector<bool>{true, false})) << (bf16 ? "bf16" : "f32");
  }
}

TEST(GptMemory, LargeModelsTakeNoTime) {
  const GptOptions options = gpt_options("llama3-8b");
  engine::count_memory();
  const int64_t before = engine::memory_count().now;
  const auto gpt = engine::deferred<Gpt>(options);
  parallel::EstimateOptions eight{.ranks = 8};
  eight.wrapping.shard = parallel::ShardOptions{};
  const parallel::MemoryEstimate estimate = parallel::estimate_memory(
      *gpt, step_memory(options, {.tokens = 1024, .bf16 = true, .divided = true}), eight);
  EXPECT_NEAR(static_cast<double>(estimate.parameters), 8.03e9 * 4 / 8, 0.02e9);
  EXPECT_EQ(estimate.gradients, estimate.parameters);
  EXPECT_EQ(estimate.state, 2 * estimate.parameters);
  EXPECT_LT(engine::memory_count().now - before, 8 << 20);  // the tables of angles
}

TEST(GptMemory, RefusesWhatHasNoFormula) {
  GptOptions options = gpt_options("gpt:layers=1,width=64,heads=2");
  EXPECT_NE(test::error_text<UsageError>([&] {
              (void)step_memory(options, {.tokens = 5000});
            }).find("1024"),
            std::string::npos);
  EXPECT_NE(test::error_text<UsageError>([&] {
              (void)step_memory(options, {.bf16 = true, .pure_bf16 = true});
            }).find("exclude each other"),
            std::string::npos);
  options.dropout = 0.1;
  EXPECT_THROW((void)step_memory(options, {}), UsageError);
}

}  // namespace
}  // namespace argosy::text
