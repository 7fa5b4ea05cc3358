#include "argosy/metrics/class_measure.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/metrics/batch_input.h"
#include "argosy/metrics/reduce_counts.h"

namespace argosy::metrics {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr const char* where(Measure measure) {
  switch (measure) {
    case Measure::kPrecision:
      return "metrics.Precision";
    case Measure::kRecall:
      return "metrics.Recall";
    case Measure::kF1:
      break;
  }
  return "metrics.F1";
}

constexpr const char* name_of(Measure measure) {
  switch (measure) {
    case Measure::kPrecision:
      return "precision";
    case Measure::kRecall:
      return "recall";
    case Measure::kF1:
      break;
  }
  return "f1";
}

/// Of one class.
struct Counts {
  int64_t right = 0;
  int64_t predicted = 0;
  int64_t occurring = 0;
};

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

double value_of(Measure measure, const Counts& c) {
  switch (measure) {
    case Measure::kPrecision:
      return share(c.right, c.predicted);
    case Measure::kRecall:
      return share(c.right, c.occurring);
    case Measure::kF1:
      break;
  }
  return share(2 * c.right, c.predicted + c.occurring);
}

double averaged(Measure measure, Average average, const std::vector<Counts>& classes) {
  Counts all;
  double sum = 0;
  double weights = 0;
  for (const Counts& c : classes) {
    all.right += c.right;
    all.predicted += c.predicted;
    all.occurring += c.occurring;
    const bool seen = c.predicted + c.occurring > 0;
    const double weight =
        average == Average::kWeighted ? static_cast<double>(c.occurring) : (seen ? 1.0 : 0.0);
    sum += weight * value_of(measure, c);
    weights += weight;
  }
  return average == Average::kMicro ? value_of(measure, all) : sum / weights;
}

}  // namespace

template <Measure M>
ClassMeasure<M>::ClassMeasure(const ClassMeasureOptions& options)
    : options_(options),
      counts_(3 * static_cast<size_t>(std::max<int64_t>(options.num_classes, 1)) + 2, 0) {
  ARGOSY_CHECK(options.num_classes == 0 ||
                   (options.num_classes >= 2 && options.num_classes <= (int64_t{1} << 24)),
               where(M),
               "num_classes must be 0 (two classes, one score) or 2 to 16777216, got {}",
               options.num_classes);
  ARGOSY_CHECK(!std::isnan(options.threshold), where(M), "threshold must be a number, got nan");
}

template <Measure M>
void ClassMeasure<M>::update(const at::Tensor& scores, const at::Tensor& labels) {
  int64_t* samples = &counts_[counts_.size() - 2];
  if (options_.num_classes > 0) {
    const ClassBatch batch = class_batch(where(M), scores, labels, options_.num_classes);
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      counts_[3 * batch.labels[i]] += batch.predicted[i] == batch.labels[i] ? 1 : 0;
      ++counts_[3 * batch.predicted[i] + 1];
      ++counts_[3 * batch.labels[i] + 2];
    }
    *samples += static_cast<int64_t>(batch.labels.size());
    return;
  }
  const BinaryBatch batch = binary_batch(where(M), scores, labels, ScorePairs::kRefused);
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const double score = batch.score(static_cast<int64_t>(i));
    const bool positive = score >= options_.threshold;
    counts_[0] += positive && batch.labels[i] ? 1 : 0;
    counts_[1] += positive ? 1 : 0;
    counts_[2] += batch.labels[i] ? 1 : 0;
    counts_.back() += std::isnan(score) ? 1 : 0;
  }
  *samples += static_cast<int64_t>(batch.labels.size());
}

template <Measure M>
std::vector<int64_t> ClassMeasure<M>::counts_of_all(const comm::Group& group) const {
  return all_reduced(counts_, group);
}

template <Measure M>
double ClassMeasure<M>::compute(const comm::Group& group) const {
  const std::vector<int64_t> all = counts_of_all(group);
  if (all[all.size() - 2] == 0 || all.back() > 0) {
    return kNan;
  }
  std::vector<Counts> classes;
  for (size_t i = 0; i + 2 < all.size(); i += 3) {
    classes.push_back({all[i], all[i + 1], all[i + 2]});
  }
  return classes.size() == 1 ? value_of(M, classes[0]) : averaged(M, options_.average, classes);
}

template <Measure M>
std::vector<double> ClassMeasure<M>::values(const comm::Group& group) const {
  if (options_.num_classes == 0 || options_.average != Average::kNone) {
    return {compute(group)};
  }
  const std::vector<int64_t> all = counts_of_all(group);
  std::vector<double> values;
  for (size_t i = 0; i + 2 < all.size(); i += 3) {
    values.push_back(all[all.size() - 2] == 0 ? kNan
                                              : value_of(M, {all[i], all[i + 1], all[i + 2]}));
  }
  return values;
}

template <Measure M>
std::vector<std::string> ClassMeasure<M>::names() const {
  if (options_.num_classes == 0 || options_.average != Average::kNone) {
    return {name_of(M)};
  }
  std::vector<std::string> names;
  for (int64_t c = 0; c < options_.num_classes; ++c) {
    names.push_back(fmt::format("{}_{}", name_of(M), c));
  }
  return names;
}

template <Measure M>
void ClassMeasure<M>::reset() {
  *this = ClassMeasure(options_);
}

template <Measure M>
State ClassMeasure<M>::state() const {
  State state = {options_.num_classes, bits_of(options_.threshold)};
  state.insert(state.end(), counts_.begin(), counts_.end());
  return state;
}

template <Measure M>
void ClassMeasure<M>::load_state(const State& state) {
  StateReader reader(where(M), state);
  reader.expect(options_.num_classes, "num_classes");
  reader.expect(bits_of(options_.threshold), "threshold (its bits)");
  ClassMeasure loaded(options_);
  for (int64_t& count : loaded.counts_) {
    count = reader.next_count();
  }
  reader.end();
  *this = std::move(loaded);
}

template <Measure M>
void ClassMeasure<M>::merge_state(const State& other) {
  ClassMeasure more(options_);
  more.load_state(other);
  merge_counts(where(M), counts_, more.counts_);
}

template class ClassMeasure<Measure::kPrecision>;
template class ClassMeasure<Measure::kRecall>;
template class ClassMeasure<Measure::kF1>;

}  // namespace argosy::metrics
