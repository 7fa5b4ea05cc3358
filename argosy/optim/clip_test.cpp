#include "argosy/optim/clip.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"
#include "argosy/optim/optim_test_problem.h"

namespace argosy::optim {
namespace {

using engine::NamedTensors;
using testing::clone;
using testing::difference;
using testing::make_parameters;
using testing::set_gradients;
using testing::tensors;

// Gradients of one list as a list of its own, to compare them with difference().
NamedTensors gradients(const NamedTensors& parameters) {
  NamedTensors result;
  for (const auto& [name, parameter] : parameters) {
    result.emplace_back(name, parameter.grad());
  }
  return result;
}

TEST(ClipGradNorm, IsPyTorchs) {
  for (const double type : {2.0, std::numeric_limits<double>::infinity()}) {
    for (const double max_norm : {0.5, 1e9}) {
      const NamedTensors mine = make_parameters(torch::kDouble), reference = clone(mine);
      set_gradients(mine, 7);
      set_gradients(reference, 7);
      std::vector<torch::Tensor> list;
      for (const auto& tensor : tensors(reference)) {
        if (tensor.numel() > 0) {  // libtorch's infinity norm fails on an empty gradient
          list.push_back(tensor);
        }
      }
      const double norm = clip_grad_norm_(mine, max_norm, {.norm_type = type});
      const double expected = torch::nn::utils::clip_grad_norm_(list, max_norm, type);
      EXPECT_NEAR(norm / expected, 1, 1e-13);
      EXPECT_LT(difference(gradients(mine), gradients(reference)), 1e-13);
    }
  }
}

TEST(ClipGradNorm, TreatsGapsUndefinedAndTiedGradients) {
  torch::Tensor a = torch::zeros({2, 2}, torch::requires_grad()), unused = a.detach().clone();
  torch::Tensor wide = torch::full({2, 4}, 2.0);
  a.mutable_grad() = wide.slice(1, 0, 2);  // a view with gaps: 4 elements of 2, norm 4
  EXPECT_DOUBLE_EQ(clip_grad_norm_({{"a", a}, {"tied", a}, {"unused", unused}}, 2.0), 4.0);
  EXPECT_NEAR(a.grad()[1][1].item<float>(), 1.0, 1e-5);
  EXPECT_EQ(wide[0][3].item<float>(), 2.0) << "beside the view";
  EXPECT_EQ(clip_grad_norm_(NamedTensors{}, 1.0), 0.0);
}

TEST(ClipGradNorm, NaNIsReportedOrPassedOn) {
  torch::Tensor a = torch::zeros({3}, torch::requires_grad());
  a.mutable_grad() = torch::tensor({1.0F, NAN, 2.0F});
  try {
    clip_grad_norm_({{"a", a}}, 1.0, {.error_if_nonfinite = true});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the norm of the gradients is nan"));
  }
  EXPECT_TRUE(std::isnan(clip_grad_norm_({{"a", a}}, 1.0)));
  EXPECT_TRUE(a.grad().isnan().all().item<bool>());
  EXPECT_THROW(clip_grad_norm_({{"a", a}}, 1.0, {.norm_type = 3}), UsageError);
  EXPECT_THROW(clip_grad_norm_({{"a", a}}, -1.0), UsageError);
}

TEST(ClipGradValue, IsPyTorchs) {
  const NamedTensors mine = make_parameters(torch::kFloat), reference = clone(mine);
  set_gradients(mine, 7);
  set_gradients(reference, 7);
  clip_grad_value_(mine, 0.3);
  torch::nn::utils::clip_grad_value_(tensors(reference), 0.3);
  EXPECT_TRUE(testing::same_bits(gradients(mine), gradients(reference)));
}

// Each option against the same thing done by hand with tensor operations, then a plain step.
void expect_clip(const GradClip& clip, const std::function<void(const NamedTensors&)>& by_hand) {
  const NamedTensors mine = make_parameters(torch::kDouble), reference = clone(mine);
  Adam clipped(mine, {.lr = 0.01, .weight_decay = 0.1, .grad_clip = clip});
  Adam plain(reference, {.lr = 0.01, .weight_decay = 0.1});
  for (int step = 0; step < 20; ++step) {
    set_gradients(mine, step);
    set_gradients(reference, step);
    const torch::Tensor before = mine[0].second.grad().clone();
    by_hand(reference);
    clipped.step();
    plain.step();
    EXPECT_TRUE(torch::equal(before, mine[0].second.grad())) << "the gradient itself was changed";
  }
  EXPECT_LT(difference(mine, reference), 1e-12);
}

TEST(GradClip, ByGlobalNorm) {
  for (const double limit : {0.5, 1e9}) {
    expect_clip(ClipGradByGlobalNorm(limit), [&](const NamedTensors& list) {
      torch::Tensor sum = torch::zeros({}, torch::kDouble);
      for (const auto& [name, p] : list) {
        sum += p.grad().square().sum();
      }
      for (const auto& [name, p] : list) {
        p.mutable_grad().mul_(limit / std::max(sum.sqrt().item<double>(), limit));
      }
    });
  }
}

TEST(GradClip, ByNorm) {
  expect_clip(ClipGradByNorm(2.0), [](const NamedTensors& list) {
    for (const auto& [name, p] : list) {
      p.mutable_grad().mul_(2.0 / std::max(p.grad().norm().item<double>(), 2.0));
    }
  });
}

TEST(GradClip, ByValue) {
  expect_clip(ClipGradByValue(0.4), [](const NamedTensors& list) {
    for (const auto& [name, p] : list) {
      p.mutable_grad().clamp_(-0.4, 0.4);
    }
  });
}

}  // namespace
}  // namespace argosy::optim
