#include "argosy/metrics/confusion_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/metrics/batch_input.h"
#include "argosy/metrics/reduce_counts.h"

namespace argosy::metrics {
namespace {

constexpr int64_t kMostClasses = 1 << 14;  // 2 GiB of counts

}  // namespace

ConfusionMatrix::ConfusionMatrix(const ConfusionMatrixOptions& options)
    : classes_(options.num_classes) {
  ARGOSY_CHECK(classes_ >= 2 && classes_ <= kMostClasses,
               "metrics.ConfusionMatrix",
               "num_classes must be 2 to {}, got {}",
               kMostClasses,
               classes_);
  counts_.resize(static_cast<size_t>(classes_ * classes_));
}

void ConfusionMatrix::update(const at::Tensor& scores, const at::Tensor& labels) {
  const ClassBatch batch = class_batch("metrics.ConfusionMatrix", scores, labels, classes_);
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    ++counts_[static_cast<size_t>(batch.labels[i] * classes_ + batch.predicted[i])];
  }
}

at::Tensor ConfusionMatrix::compute(const comm::Group& group) const {
  const std::vector<int64_t> all = all_reduced(counts_, group);
  at::Tensor matrix = at::empty({classes_, classes_}, at::kLong);
  std::copy(all.begin(), all.end(), matrix.data_ptr<int64_t>());
  return matrix;
}

at::Tensor ConfusionMatrix::normalized(NormalizeBy by, const comm::Group& group) const {
  at::Tensor counts = compute(group).to(at::kDouble);
  switch (by) {
    case NormalizeBy::kNone:
      return counts;
    case NormalizeBy::kTrue:
      return counts.div(counts.sum(1, /*keepdim=*/true).clamp_min(1));
    case NormalizeBy::kPredicted:
      return counts.div(counts.sum(0, /*keepdim=*/true).clamp_min(1));
    case NormalizeBy::kAll:
      break;
  }
  return counts.div(counts.sum().clamp_min(1));
}

std::string ConfusionMatrix::to_string(const Shown& shown) const {
  ARGOSY_CHECK(shown.classes.empty() || static_cast<int64_t>(shown.classes.size()) == classes_,
               "metrics.ConfusionMatrix",
               "expected {} names of classes, got {}",
               classes_,
               shown.classes.size());
  auto name = [&](int64_t c) {
    return shown.classes.empty() ? std::to_string(c) : shown.classes[c];
  };
  const at::Tensor matrix = normalized(shown.normalize, shown.group);
  const auto* value = matrix.data_ptr<double>();
  std::vector<std::string> headings = {"true \\ predicted"};
  std::vector<std::vector<std::string>> rows;
  for (int64_t i = 0; i < classes_; ++i) {
    headings.push_back(name(i));
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(name(i));
    for (int64_t j = 0; j < classes_; ++j, ++value) {
      row.push_back(shown.normalize == NormalizeBy::kNone ? fmt::format("{:.0f}", *value)
                                                          : fmt::format("{:.3f}", *value));
    }
  }
  return text::table(headings, rows);
}

void ConfusionMatrix::reset() {
  std::fill(counts_.begin(), counts_.end(), 0);
}

State ConfusionMatrix::state() const {
  State state = {classes_};
  state.insert(state.end(), counts_.begin(), counts_.end());
  return state;
}

void ConfusionMatrix::load_state(const State& state) {
  StateReader reader("metrics.ConfusionMatrix", state);
  reader.expect(classes_, "num_classes");
  std::vector<int64_t> counts(counts_.size());
  std::generate(counts.begin(), counts.end(), [&] { return reader.next_count(); });
  reader.end();
  counts_ = std::move(counts);
}

void ConfusionMatrix::merge_state(const State& other) {
  ConfusionMatrix more({.num_classes = classes_});
  more.load_state(other);
  merge_counts("metrics.ConfusionMatrix", counts_, more.counts_);
}

}  // namespace argosy::metrics
