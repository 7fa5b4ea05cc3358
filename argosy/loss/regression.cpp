#include "argosy/loss/regression.h"

#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/smooth_l1_loss.h>

#include "argosy/base/check.h"
#include "argosy/loss/checks.h"
#include "argosy/loss/parameters.h"

namespace argosy::loss {
namespace {

constexpr const char* kMse = "loss.MSE";
constexpr const char* kL1 = "loss.L1";
constexpr const char* kSmoothL1 = "loss.SmoothL1";
constexpr const char* kHuber = "loss.Huber";

double count_of(const char* where,
                const at::Tensor& output,
                const at::Tensor& target,
                Reduction reduction) {
  check_same_shape(where, output, target);
  return reduction == Reduction::kSum ? 1 : static_cast<double>(output.numel());
}

}  // namespace

at::Tensor MSE::operator()(const at::Tensor& output, const at::Tensor& target) const {
  check_same_shape(kMse, output, target);
  return guarded(kMse,
                 [&] { return at::mse_loss(output, target, torch_reduction(options_.reduction)); });
}
double MSE::count(const at::Tensor& output, const at::Tensor& target) const {
  return count_of(kMse, output, target, options_.reduction);
}

at::Tensor L1::operator()(const at::Tensor& output, const at::Tensor& target) const {
  check_same_shape(kL1, output, target);
  return guarded(kL1,
                 [&] { return at::l1_loss(output, target, torch_reduction(options_.reduction)); });
}
double L1::count(const at::Tensor& output, const at::Tensor& target) const {
  return count_of(kL1, output, target, options_.reduction);
}

SmoothL1::SmoothL1(const SmoothL1Options& options) : options_(options) {
  ARGOSY_CHECK(options.beta >= 0, kSmoothL1, "beta must be at least 0, got {}", options.beta);
}
at::Tensor SmoothL1::operator()(const at::Tensor& output, const at::Tensor& target) const {
  check_same_shape(kSmoothL1, output, target);
  return guarded(kSmoothL1, [&] {
    return at::smooth_l1_loss(output, target, torch_reduction(options_.reduction), options_.beta);
  });
}
double SmoothL1::count(const at::Tensor& output, const at::Tensor& target) const {
  return count_of(kSmoothL1, output, target, options_.reduction);
}

Huber::Huber(const HuberOptions& options) : options_(options) {
  ARGOSY_CHECK(options.delta > 0, kHuber, "delta must be positive, got {}", options.delta);
}
at::Tensor Huber::operator()(const at::Tensor& output, const at::Tensor& target) const {
  check_same_shape(kHuber, output, target);
  return guarded(kHuber, [&] {
    return at::huber_loss(output, target, torch_reduction(options_.reduction), options_.delta);
  });
}
double Huber::count(const at::Tensor& output, const at::Tensor& target) const {
  return count_of(kHuber, output, target, options_.reduction);
}

std::string MSE::parameters() const {
  return in_words(options_.reduction);
}
std::string L1::parameters() const {
  return in_words(options_.reduction);
}
std::string SmoothL1::parameters() const {
  return joined(
      {in_words("beta", options_.beta, SmoothL1Options().beta), in_words(options_.reduction)});
}
std::string Huber::parameters() const {
  return joined(
      {in_words("delta", options_.delta, HuberOptions().delta), in_words(options_.reduction)});
}

}  // namespace argosy::loss
