#include "argosy/loss/probabilities.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/core/Reduction.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/loss/checks.h"
#include "argosy/loss/parameters.h"

namespace argosy::loss {
namespace {

constexpr const char* kBce = "loss.BCE";
constexpr const char* kBceWithLogits = "loss.BCEWithLogits";
constexpr const char* kKLDiv = "loss.KLDiv";

void check_factor(const char* where, const char* name, const at::Tensor& factor) {
  ARGOSY_CHECK(!factor.defined() || factor.is_floating_point(),
               where,
               "{} must be floating point, got {}",
               name,
               c10::toString(factor.scalar_type()));
}

at::Tensor factor_for(const char* where,
                      const char* name,
                      const at::Tensor& factor,
                      const at::Tensor& output) {
  if (!factor.defined()) {
    return factor;
  }
  ARGOSY_CHECK(at::is_expandable_to(factor.sizes(), output.sizes()),
               where,
               "{} {} cannot be broadcast to the output {}",
               name,
               text::shape(factor),
               text::shape(output));
  return factor.to(output.device(), output.scalar_type());
}

double elements(const char* where,
                const at::Tensor& output,
                const at::Tensor& target,
                Reduction reduction) {
  check_same_shape(where, output, target);
  return reduction == Reduction::kSum ? 1 : static_cast<double>(output.numel());
}

std::optional<std::string> no_probability(const at::Tensor& output) {
  const at::Tensor wrong = output.detach().ge(0).logical_and(output.detach().le(1)).logical_not();
  if (!wrong.any().item<bool>()) {
    return std::nullopt;
  }
  const auto at = wrong.flatten().to(at::kByte).argmax().item<int64_t>();
  return fmt::format(
      "output {} of element {} is no probability: expected 0 to 1. Apply sigmoid, or "
      "use BCEWithLogits",
      output.detach().flatten()[at].item<double>(),
      at);
}

}  // namespace

BCE::BCE(BceOptions options) : options_(std::move(options)) {
  check_factor(kBce, "weight", options_.weight);
}

at::Tensor BCE::operator()(const at::Tensor& output, const at::Tensor& target) const {
  check_same_shape(kBce, output, target);
  const at::Tensor weight = factor_for(kBce, "weight", options_.weight, output);
  return guarded(
      kBce,
      [&] {
        return at::binary_cross_entropy(
            output, target, weight, torch_reduction(options_.reduction));
      },
      [&] { return no_probability(output); });
}

double BCE::count(const at::Tensor& output, const at::Tensor& target) const {
  return elements(kBce, output, target, options_.reduction);
}

BCEWithLogits::BCEWithLogits(BceWithLogitsOptions options) : options_(std::move(options)) {
  check_factor(kBceWithLogits, "weight", options_.weight);
  check_factor(kBceWithLogits, "pos_weight", options_.pos_weight);
}

at::Tensor BCEWithLogits::operator()(const at::Tensor& logits, const at::Tensor& target) const {
  check_same_shape(kBceWithLogits, logits, target);
  const at::Tensor weight = factor_for(kBceWithLogits, "weight", options_.weight, logits);
  const at::Tensor positive = factor_for(kBceWithLogits, "pos_weight", options_.pos_weight, logits);
  return guarded(kBceWithLogits, [&] {
    return at::binary_cross_entropy_with_logits(
        logits, target, weight, positive, torch_reduction(options_.reduction));
  });
}

double BCEWithLogits::count(const at::Tensor& logits, const at::Tensor& target) const {
  return elements(kBceWithLogits, logits, target, options_.reduction);
}

at::Tensor KLDiv::operator()(const at::Tensor& log_probabilities, const at::Tensor& target) const {
  check_same_shape(kKLDiv, log_probabilities, target);
  const bool log_target = options_.target == KLTarget::kLogProbabilities;
  return guarded(kKLDiv, [&] {
    switch (options_.reduction) {
      case KLReduction::kMean:
        return at::kl_div(log_probabilities, target, at::Reduction::Mean, log_target);
      case KLReduction::kNone:
        return at::kl_div(log_probabilities, target, at::Reduction::None, log_target);
      case KLReduction::kSum:
      case KLReduction::kBatchMean:
        break;
    }
    const at::Tensor sum = at::kl_div(log_probabilities, target, at::Reduction::Sum, log_target);
    return options_.reduction == KLReduction::kSum ? sum
                                                   : sum.div(count(log_probabilities, target));
  });
}

double KLDiv::count(const at::Tensor& log_probabilities, const at::Tensor& target) const {
  check_same_shape(kKLDiv, log_probabilities, target);
  if (options_.reduction == KLReduction::kBatchMean) {
    return static_cast<double>(log_probabilities.dim() == 0 ? 1 : log_probabilities.size(0));
  }
  return options_.reduction == KLReduction::kSum ? 1
                                                 : static_cast<double>(log_probabilities.numel());
}

std::string BCE::parameters() const {
  return joined({in_words("weight", options_.weight), in_words(options_.reduction)});
}
std::string BCEWithLogits::parameters() const {
  return joined({in_words("weight", options_.weight),
                 in_words("pos_weight", options_.pos_weight),
                 in_words(options_.reduction)});
}
std::string KLDiv::parameters() const {
  std::string reduction;
  switch (options_.reduction) {
    case KLReduction::kMean:
      break;
    case KLReduction::kBatchMean:
      reduction = "reduction=batchmean";
      break;
    case KLReduction::kSum:
      reduction = in_words(Reduction::kSum);
      break;
    case KLReduction::kNone:
      reduction = in_words(Reduction::kNone);
      break;
  }
  return joined({options_.target == KLTarget::kLogProbabilities ? "target=log_probabilities" : "",
                 reduction});
}

}  // namespace argosy::loss
