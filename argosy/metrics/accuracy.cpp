#include "argosy/metrics/accuracy.h"

#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/metrics/reduce_counts.h"

namespace argosy::metrics {
namespace {

/// How many classes rank above `label`: greater ones, and equal ones of lower index.
template <typename T>
int64_t classes_above(const T* logits, int64_t classes, int64_t label) {
  const T own = logits[label];
  int64_t above = 0;
  if (std::isnan(own)) {
    for (int64_t c = 0; c < label; ++c) {
      above += std::isnan(logits[c]) ? 1 : 0;
    }
    return above;
  }
  for (int64_t c = 0; c < label; ++c) {
    above += !(logits[c] < own) ? 1 : 0;  // equal or greater; NaN too
  }
  for (int64_t c = label + 1; c < classes; ++c) {
    above += !(logits[c] <= own) ? 1 : 0;
  }
  return above;
}

/// Adds to `right`; returns how many rows were counted.
template <typename T>
int64_t count_right(const at::Tensor& logits,
                    const at::Tensor& labels,
                    const AccuracyOptions& options,
                    std::vector<int64_t>& right) {
  const T* row = logits.data_ptr<T>();
  const auto* label = labels.data_ptr<int64_t>();
  const int64_t classes = logits.size(1);
  int64_t counted = 0;
  for (int64_t i = 0; i < logits.size(0); ++i, row += classes) {
    if (label[i] == options.ignore_index) {
      continue;
    }
    const int64_t above = classes_above(row, classes, label[i]);
    for (size_t k = 0; k < options.topk.size(); ++k) {
      right[k] += above < options.topk[k] ? 1 : 0;
    }
    ++counted;
  }
  return counted;
}

/// [N, d1, …] of logits [N, C, d1, …].
std::vector<int64_t> places_of(const at::Tensor& logits) {
  std::vector<int64_t> places = logits.sizes().vec();
  places.erase(places.begin() + 1);
  return places;
}

/// "row 3", or of a sequence "place [1, 0]".
std::string place_in_words(int64_t i, const std::vector<int64_t>& places) {
  if (places.size() == 1) {
    return fmt::format("row {}", i);
  }
  std::vector<int64_t> place(places.size());
  for (size_t d = places.size(); d-- > 0; i /= places[d]) {
    place[d] = i % places[d];
  }
  return fmt::format("place [{}]", fmt::join(place, ", "));
}

void check_shapes(const at::Tensor& logits,
                  const at::Tensor& labels,
                  const std::vector<int64_t>& topk) {
  const bool defined = logits.defined() && labels.defined() && logits.dim() >= 2;
  const bool column = defined && labels.dim() == logits.dim() && labels.size(1) == 1;
  const bool fits = defined && (column ? labels.squeeze(1) : labels).sizes() ==
                                   at::IntArrayRef(places_of(logits));
  // [N, T, C] and [N, T]: the classes of a Transformer stand last.
  const bool last = defined && !fits && logits.dim() > 2 &&
                    labels.sizes() == logits.sizes().slice(0, logits.dim() - 1);
  ARGOSY_CHECK(
      fits,
      "metrics.Accuracy",
      "expected logits [N, C] and labels [N] or [N, 1], or logits [N, C, d1, …] and labels "
      "[N, d1, …], got {} and {}{}",
      text::shape(logits),
      text::shape(labels),
      last ? ". Classes belong into dim 1: call logits.movedim(-1, 1)" : "");
  ARGOSY_CHECK(logits.is_floating_point(),
               "metrics.Accuracy",
               "logits must be floating point, got {}",
               c10::toString(logits.scalar_type()));
  ARGOSY_CHECK(at::isIntegralType(labels.scalar_type(), /*includeBool=*/false),
               "metrics.Accuracy",
               "labels must be integers (class numbers), got {}",
               c10::toString(labels.scalar_type()));
  for (const int64_t k : topk) {
    ARGOSY_CHECK(k <= logits.size(1),
                 "metrics.Accuracy",
                 "top-{} needs at least {} classes, the logits have {}",
                 k,
                 k,
                 logits.size(1));
  }
}

}  // namespace

Accuracy::Accuracy(AccuracyOptions options)
    : options_(std::move(options)), right_(options_.topk.size(), 0) {
  ARGOSY_CHECK(
      !options_.topk.empty(), "metrics.Accuracy", "topk must name at least one k, e.g. {{1, 5}}");
  for (const int64_t k : options_.topk) {
    ARGOSY_CHECK(k >= 1, "metrics.Accuracy", "every k in topk must be at least 1, got {}", k);
  }
}

void Accuracy::update(const at::Tensor& logits, const at::Tensor& labels) {
  check_shapes(logits, labels, options_.topk);
  const auto type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const int64_t classes = logits.size(1);
  const at::Tensor values =
      logits.detach().to(at::kCPU, type).movedim(1, -1).reshape({-1, classes}).contiguous();
  const at::Tensor targets = labels.detach().to(at::kCPU, at::kLong).reshape({-1}).contiguous();
  const auto* label = targets.data_ptr<int64_t>();
  for (int64_t i = 0; i < targets.numel(); ++i) {
    ARGOSY_CHECK((label[i] >= 0 && label[i] < classes) || label[i] == options_.ignore_index,
                 "metrics.Accuracy",
                 "label {} in {} is outside the {} classes of the logits (0 to {}). Labels that "
                 "are to be passed over: .ignore_index",
                 label[i],
                 place_in_words(i, places_of(logits)),
                 classes,
                 classes - 1);
  }
  count_ += type == at::kDouble ? count_right<double>(values, targets, options_, right_)
                                : count_right<float>(values, targets, options_, right_);
}

double Accuracy::compute(const comm::Group& group) const {
  return values(group).front();
}

std::vector<double> Accuracy::values(const comm::Group& group) const {
  std::vector<int64_t> counts = right_;
  counts.push_back(count_);
  counts = all_reduced(std::move(counts), group);
  std::vector<double> shares(right_.size(), std::numeric_limits<double>::quiet_NaN());
  for (size_t k = 0; k < shares.size() && counts.back() > 0; ++k) {
    shares[k] = static_cast<double>(counts[k]) / static_cast<double>(counts.back());
  }
  return shares;
}

int64_t Accuracy::count(const comm::Group& group) const {
  return all_reduced({count_}, group)[0];
}

std::vector<std::string> Accuracy::names() const {
  if (options_.topk == std::vector<int64_t>{1}) {
    return {"acc"};
  }
  std::vector<std::string> names;
  for (const int64_t k : options_.topk) {
    names.push_back(fmt::format("acc_top{}", k));
  }
  return names;
}

void Accuracy::reset() {
  *this = Accuracy(options_);
}

State Accuracy::state() const {
  State state = {static_cast<int64_t>(options_.topk.size())};
  state.insert(state.end(), options_.topk.begin(), options_.topk.end());
  state.insert(state.end(), right_.begin(), right_.end());
  state.push_back(count_);
  return state;
}

void Accuracy::load_state(const State& state) {
  StateReader reader("metrics.Accuracy", state);
  reader.expect(static_cast<int64_t>(options_.topk.size()), "topk.size()");
  for (const int64_t k : options_.topk) {
    reader.expect(k, "topk");
  }
  Accuracy loaded(options_);
  for (int64_t& right : loaded.right_) {
    right = reader.next_count();
  }
  loaded.count_ = reader.next_count();
  reader.end();
  *this = std::move(loaded);
}

void Accuracy::merge_state(const State& other) {
  Accuracy more(options_);
  more.load_state(other);
  Accuracy both = *this;
  merge_counts("metrics.Accuracy", both.right_, more.right_);
  merge_counts("metrics.Accuracy", {&both.count_, 1}, {&more.count_, 1});
  *this = std::move(both);
}

}  // namespace argosy::metrics
