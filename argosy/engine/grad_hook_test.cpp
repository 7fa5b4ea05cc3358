#include "argosy/engine/grad_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

namespace argosy::engine {
namespace {

using ::testing::HasSubstr;

torch::Tensor leaf() {
  return torch::ones({3}, torch::requires_grad());
}

TEST(AfterGrad, SeesTheAccumulatedGradientOncePerPass) {
  torch::Tensor w = leaf();
  std::vector<double> seen;
  GradHook hook = after_grad(w, [&] { seen.push_back(w.grad().sum().item<double>()); });
  (w * 2 + w).sum().backward();  // used twice, accumulated once
  (w * 2).sum().backward();
  EXPECT_EQ(seen, (std::vector<double>{9, 15}));
}

TEST(AfterGrad, KeepsTheAccumulatorAliveBetweenGraphs) {
  int calls = 0;
  torch::Tensor w = leaf();
  GradHook hook = after_grad(w, [&] { ++calls; });
  for (int pass = 0; pass < 3; ++pass) {
    w.sum().backward();  // each graph is gone before the next one is built
  }
  EXPECT_EQ(calls, 3);
}

TEST(AfterGrad, IsNotCalledForALeafOutsideTheGraph) {
  int calls = 0;
  torch::Tensor used = leaf(), unused = leaf();
  GradHook hook = after_grad(unused, [&] { ++calls; });
  used.sum().backward();
  EXPECT_EQ(calls, 0);
}

TEST(AfterGrad, StopsWhenTheHandleGoes) {
  int first = 0, second = 0;
  torch::Tensor w = leaf();
  GradHook kept = after_grad(w, [&] { ++first; });
  {
    GradHook dropped = after_grad(w, [&] { ++second; });
    w.sum().backward();
  }
  w.sum().backward();
  GradHook moved = std::move(kept);
  w.sum().backward();
  moved.remove();
  moved.remove();
  EXPECT_FALSE(moved.active());
  w.sum().backward();
  EXPECT_EQ(first, 3);
  EXPECT_EQ(second, 1);
}

TEST(AfterGrad, AssigningAHandleTakesTheOldHookOff) {
  int first = 0, second = 0;
  torch::Tensor w = leaf();
  GradHook hook = after_grad(w, [&] { ++first; });
  hook = after_grad(w, [&] { ++second; });
  w.sum().backward();
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST(AfterGrad, ExceptionsLeaveBackwardWithTheirOwnType) {
  torch::Tensor w = leaf();
  GradHook hook = after_grad(w, [] {
    throw CommError("comm.all_reduce", "rank 5 is gone", CommContext{.rank = 3, .peers = {5}});
  });
  try {
    w.sum().backward();
    FAIL() << "backward() swallowed the exception";
  } catch (const CommError& error) {
    EXPECT_EQ(error.peers(), std::vector<int>{5});
    EXPECT_THAT(error.what(), HasSubstr("rank 5 is gone"));
  }
  hook.remove();
  w.sum().backward();  // the engine is usable afterwards
}

TEST(AfterGrad, RefusesWhatHasNoAccumulator) {
  torch::Tensor w = leaf();
  const auto message = [](const torch::Tensor& tensor) -> std::string {
    try {
      GradHook hook = after_grad(tensor, [] {});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(w * 2), HasSubstr("[engine.after_grad]"));
  EXPECT_THAT(message(w * 2), HasSubstr("the result of an operation"));
  EXPECT_THAT(message(torch::ones({1})), HasSubstr("requires_grad = false"));
  EXPECT_THAT(message(torch::Tensor()), HasSubstr("undefined"));
  EXPECT_THROW((void)after_grad(w, nullptr), UsageError);
}

TEST(AtEndOfBackward, RunsOnceAfterAllGradients) {
  torch::Tensor a = leaf(), b = leaf();
  std::vector<std::string> order;
  GradHook hook_a = after_grad(a, [&] {
    order.emplace_back("grad");
    at_end_of_backward([&] { order.emplace_back("end"); });
  });
  GradHook hook_b = after_grad(b, [&] { order.emplace_back("grad"); });
  (a * b).sum().backward();
  EXPECT_EQ(order, (std::vector<std::string>{"grad", "grad", "end"}));
  (b * 2).sum().backward();
  EXPECT_EQ(order.size(), 4U);  // queued for one pass only
}

TEST(AtEndOfBackward, ExceptionsLeaveBackwardWithTheirOwnType) {
  torch::Tensor w = leaf();
  GradHook hook = after_grad(w, [] {
    at_end_of_backward([] { throw TimeoutError("comm.wait", "late", CommContext{.peers = {1}}); });
  });
  EXPECT_THROW(w.sum().backward(), TimeoutError);
}

TEST(AtEndOfBackward, RefusesToRunOutsideOfBackward) {
  EXPECT_THROW(at_end_of_backward([] {}), UsageError);
}

}  // namespace
}  // namespace argosy::engine
