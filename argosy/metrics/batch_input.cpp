#include "argosy/metrics/batch_input.h"

#include <ATen/ops/argmax.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"

namespace argosy::metrics {
namespace {

bool is_column(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.dim() == 1 || (tensor.dim() == 2 && tensor.size(1) == 1));
}

std::vector<int64_t> integers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kLong).reshape({-1}).contiguous();
  const auto* first = flat.data_ptr<int64_t>();
  return {first, first + flat.numel()};
}

bool is_integral(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
}

void check_classes(const char* where,
                   const char* what,
                   const std::vector<int64_t>& values,
                   int64_t classes) {
  for (size_t i = 0; i < values.size(); ++i) {
    ARGOSY_CHECK(values[i] >= 0 && values[i] < classes,
                 where,
                 "{} {} in row {} is outside the {} classes (0 to {})",
                 what,
                 values[i],
                 i,
                 classes,
                 classes - 1);
  }
}

}  // namespace

double BinaryBatch::score(int64_t i) const {
  return scores.scalar_type() == at::kDouble ? scores.data_ptr<double>()[i]
                                             : static_cast<double>(scores.data_ptr<float>()[i]);
}

BinaryBatch binary_batch(const char* where,
                         const at::Tensor& scores,
                         const at::Tensor& labels,
                         ScorePairs pairs) {
  const bool paired =
      pairs == ScorePairs::kAllowed && scores.defined() && scores.dim() == 2 && scores.size(1) == 2;
  ARGOSY_CHECK(
      (is_column(scores) || paired) && is_column(labels) && scores.size(0) == labels.size(0),
      where,
      "expected scores [N]{} and labels [N], or columns of them, got {} and {}. More "
      "than two classes: .num_classes where the metric has it",
      pairs == ScorePairs::kAllowed ? " or [N, 2]" : "",
      text::shape(scores),
      text::shape(labels));
  ARGOSY_CHECK(scores.is_floating_point(),
               where,
               "scores must be floating point, got {}",
               c10::toString(scores.scalar_type()));
  const auto type = scores.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor column = paired ? scores.select(1, 1) : scores.reshape({-1});
  BinaryBatch batch{.scores = column.detach().to(at::kCPU, type).contiguous(), .labels = {}};
  const at::Tensor flat = labels.detach().to(at::kCPU, at::kDouble).reshape({-1}).contiguous();
  const auto* label = flat.data_ptr<double>();
  batch.labels.reserve(static_cast<size_t>(flat.numel()));
  for (int64_t i = 0; i < flat.numel(); ++i) {
    ARGOSY_CHECK(label[i] == 0 || label[i] == 1,
                 where,
                 "label {} in row {} is neither 0 nor 1",
                 label[i],
                 i);
    batch.labels.push_back(label[i] == 1);
  }
  return batch;
}

ClassBatch class_batch(const char* where,
                       const at::Tensor& scores,
                       const at::Tensor& labels,
                       int64_t classes) {
  const bool named = is_column(scores) && is_integral(scores);
  ARGOSY_CHECK(scores.defined() &&
                   (named || (scores.is_floating_point() && scores.dim() == 2 &&
                              scores.size(1) == classes)) &&
                   is_column(labels) && labels.size(0) == scores.size(0),
               where,
               "expected scores [N, {}] (floating point), or classes [N] (integers), and labels "
               "[N] or [N, 1], got {} and {}",
               classes,
               text::shape(scores),
               text::shape(labels));
  ARGOSY_CHECK(is_integral(labels),
               where,
               "labels must be integers (class numbers), got {}",
               c10::toString(labels.scalar_type()));
  ClassBatch batch{.predicted = integers(named ? scores : scores.detach().argmax(1)),
                   .labels = integers(labels)};
  check_classes(where, "label", batch.labels, classes);
  check_classes(where, "prediction", batch.predicted, classes);
  return batch;
}

}  // namespace argosy::metrics
