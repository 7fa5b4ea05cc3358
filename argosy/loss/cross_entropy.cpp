// N samples, C classes; logits_nc also stands for [N, C, d1, …].
#include "argosy/loss/cross_entropy.h"

#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <vector>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/loss/checks.h"
#include "argosy/loss/parameters.h"

namespace argosy::loss {
namespace {

constexpr const char* kCrossEntropy = "loss.CrossEntropy";
constexpr const char* kNll = "loss.NLL";

void check_weight(const char* where, const at::Tensor& weight) {
  ARGOSY_CHECK(!weight.defined() || (weight.dim() == 1 && weight.is_floating_point()),
               where,
               "weight must be floating point and have one number for each class, got {} of {}",
               text::shape(weight),
               weight.defined() ? c10::toString(weight.scalar_type()) : "");
}

void check_output(const char* where, const at::Tensor& output, const at::Tensor& target) {
  ARGOSY_CHECK(
      output.defined() && target.defined() && output.dim() >= 2 && output.is_floating_point(),
      where,
      "expected output [N, C] or [N, C, …] of a floating type and a target, got {} of {} "
      "and {}",
      text::shape(output),
      output.defined() ? c10::toString(output.scalar_type()) : "no type",
      text::shape(target));
}

/// Classes [N, d1, …] of type i64. Paddle's [N, 1, d1, …] loses its 1.
at::Tensor classes_of(const char* where, const at::Tensor& output, const at::Tensor& target) {
  ARGOSY_CHECK(at::isIntegralType(target.scalar_type(), /*includeBool=*/false),
               where,
               "expected classes as integers, got {} of {}",
               c10::toString(target.scalar_type()),
               text::shape(target));
  const bool column = target.dim() == output.dim() && target.size(1) == 1;
  at::Tensor classes = (column ? target.squeeze(1) : target).to(at::kLong);
  std::vector<int64_t> expected = output.sizes().vec();
  expected.erase(expected.begin() + 1);
  // [N, T, C] and [N, T]: the classes of a Transformer stand last.
  const bool last =
      output.dim() > 2 && classes.sizes() == output.sizes().slice(0, output.dim() - 1);
  ARGOSY_CHECK(classes.sizes() == at::IntArrayRef(expected),
               where,
               "expected classes [{}], one for each row of the output {}, got {}{}",
               fmt::join(expected, ", "),
               text::shape(output),
               text::shape(target),
               last ? ". The output's classes belong into dim 1: call output.movedim(-1, 1)" : "");
  return classes;
}

at::Tensor weight_for(const char* where, const at::Tensor& weight, const at::Tensor& output) {
  if (!weight.defined()) {
    return weight;
  }
  ARGOSY_CHECK(weight.size(0) == output.size(1),
               where,
               "weight has {} classes, the output {} has {}",
               weight.size(0),
               text::shape(output),
               output.size(1));
  return weight.to(output.device(), output.scalar_type(), /*non_blocking=*/true);
}

/// What is wrong with the first label that is out of range; nothing when all are in it.
std::optional<std::string> bad_label(const at::Tensor& classes, int64_t number, int64_t ignored) {
  const at::Tensor labels = classes.to(at::kCPU).contiguous();
  const auto* label = labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i) {
    if (label[i] == ignored || (label[i] >= 0 && label[i] < number)) {
      continue;
    }
    const int64_t inner = labels.numel() / labels.size(0);
    return fmt::format(
        "label {} of sample {}{} is outside the {} classes of the output (0 to {}). "
        "Labels that start at 1: subtract 1; to leave samples out: ignore_index",
        label[i],
        i / inner,
        inner == 1 ? "" : fmt::format(" (element {} of its {})", i % inner, inner),
        number,
        number - 1);
  }
  return std::nullopt;
}

/// The sum of the weights of the labels that are not ignored, or their number: 0-dim.
at::Tensor total_weight(const at::Tensor& classes, const at::Tensor& weight, int64_t ignored) {
  const at::Tensor kept = classes.ne(ignored).flatten();
  if (!weight.defined()) {
    return kept.sum();
  }
  const at::Tensor flat = classes.flatten();
  if (classes.is_cpu()) {
    return weight.index_select(0, flat.masked_select(kept)).sum();
  }
  // Of shapes that the host knows.
  return weight.index_select(0, flat.where(kept, at::zeros_like(flat))).mul(kept).sum();
}

/// counted() of both losses for classes.
at::Tensor counted_of(const char* where,
                      const at::Tensor& classes,
                      const at::Tensor& weight,
                      int64_t number,
                      int64_t ignored) {
  return guarded(
             where,
             [&] {
               const at::Tensor exact = weight.defined() ? weight.to(at::kDouble) : weight;
               return total_weight(classes, exact, ignored);
             },
             [&] { return bad_label(classes, number, ignored); })
      .to(at::kDouble);
}

at::Tensor number(double value) {
  return at::scalar_tensor(value, at::kDouble);
}

}  // namespace

CrossEntropy::CrossEntropy(CrossEntropyOptions options) : options_(std::move(options)) {
  check_weight(kCrossEntropy, options_.weight);
  ARGOSY_CHECK(options_.label_smoothing >= 0 && options_.label_smoothing <= 1,
               kCrossEntropy,
               "label_smoothing must be in [0, 1], got {}",
               options_.label_smoothing);
}

at::Tensor CrossEntropy::operator()(const at::Tensor& logits, const at::Tensor& target) const {
  check_output(kCrossEntropy, logits, target);
  const at::Tensor weight = weight_for(kCrossEntropy, options_.weight, logits);
  if (target.is_floating_point()) {
    check_same_shape(kCrossEntropy, logits, target);
    return guarded(kCrossEntropy, [&] {
      return at::cross_entropy_loss(logits,
                                    target,
                                    weight,
                                    torch_reduction(options_.reduction),
                                    /*ignore_index=*/-100,
                                    options_.label_smoothing);
    });
  }
  const at::Tensor classes = classes_of(kCrossEntropy, logits, target);
  return guarded(
      kCrossEntropy,
      [&] {
        return at::cross_entropy_loss(logits,
                                      classes,
                                      weight,
                                      torch_reduction(options_.reduction),
                                      options_.ignore_index,
                                      options_.label_smoothing);
      },
      [&] { return bad_label(classes, logits.size(1), options_.ignore_index); });
}

double CrossEntropy::count(const at::Tensor& logits, const at::Tensor& target) const {
  return counted(logits, target).item<double>();
}

at::Tensor CrossEntropy::counted(const at::Tensor& logits, const at::Tensor& target) const {
  check_output(kCrossEntropy, logits, target);
  if (options_.reduction == Reduction::kSum) {
    return number(1);
  }
  if (target.is_floating_point()) {
    return number(static_cast<double>(logits.numel()) / static_cast<double>(logits.size(1)));
  }
  return counted_of(kCrossEntropy,
                    classes_of(kCrossEntropy, logits, target),
                    weight_for(kCrossEntropy, options_.weight, logits),
                    logits.size(1),
                    options_.ignore_index);
}

NLL::NLL(NllOptions options) : options_(std::move(options)) {
  check_weight(kNll, options_.weight);
}

at::Tensor NLL::operator()(const at::Tensor& log_probabilities, const at::Tensor& target) const {
  check_output(kNll, log_probabilities, target);
  const at::Tensor weight = weight_for(kNll, options_.weight, log_probabilities);
  const at::Tensor classes = classes_of(kNll, log_probabilities, target);
  return guarded(
      kNll,
      [&] {
        return at::nll_loss_nd(log_probabilities,
                               classes,
                               weight,
                               torch_reduction(options_.reduction),
                               options_.ignore_index);
      },
      [&] { return bad_label(classes, log_probabilities.size(1), options_.ignore_index); });
}

double NLL::count(const at::Tensor& log_probabilities, const at::Tensor& target) const {
  return counted(log_probabilities, target).item<double>();
}

at::Tensor NLL::counted(const at::Tensor& log_probabilities, const at::Tensor& target) const {
  check_output(kNll, log_probabilities, target);
  if (options_.reduction == Reduction::kSum) {
    return number(1);
  }
  return counted_of(kNll,
                    classes_of(kNll, log_probabilities, target),
                    weight_for(kNll, options_.weight, log_probabilities),
                    log_probabilities.size(1),
                    options_.ignore_index);
}

std::string CrossEntropy::parameters() const {
  const CrossEntropyOptions defaults;
  return joined({in_words("weight", options_.weight),
                 in_words("label_smoothing", options_.label_smoothing, defaults.label_smoothing),
                 in_words("ignore_index", options_.ignore_index, defaults.ignore_index),
                 in_words(options_.reduction)});
}
std::string NLL::parameters() const {
  return joined({in_words("weight", options_.weight),
                 in_words("ignore_index", options_.ignore_index, NllOptions().ignore_index),
                 in_words(options_.reduction)});
}

}  // namespace argosy::loss
