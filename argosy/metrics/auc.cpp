#include "argosy/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"
#include "argosy/metrics/batch_input.h"
#include "argosy/metrics/reduce_counts.h"
#include "argosy/metrics/roc.h"

namespace argosy::metrics {
namespace {

/// Scores of all ranks, ascending.
std::vector<double> gathered(std::vector<double> scores, const comm::Group& group) {
  if (group.valid() && group.size() > 1) {
    const at::Tensor all = comm::all_gather_uneven(
        at::from_blob(scores.data(), {static_cast<int64_t>(scores.size())}, at::kDouble), group);
    scores.assign(all.data_ptr<double>(), all.data_ptr<double>() + all.numel());
  }
  std::sort(scores.begin(), scores.end());
  return scores;
}

double average_precision(const std::vector<RocPoint>& points, const RocPoint& all) {
  double area = 0;
  RocPoint seen;
  for (const RocPoint& point : points) {
    seen.positives += point.positives;
    seen.negatives += point.negatives;
    if (point.positives > 0) {
      area += static_cast<double>(point.positives) * static_cast<double>(seen.positives) /
              static_cast<double>(seen.positives + seen.negatives);
    }
  }
  return area / static_cast<double>(all.positives);
}

double area_under(Curve curve, const std::vector<RocPoint>& points) {
  if (curve == Curve::kRoc) {
    return roc_area(points);
  }
  RocPoint all;
  for (const RocPoint& point : points) {
    all.positives += point.positives;
    all.negatives += point.negatives;
  }
  return all.positives == 0 ? std::numeric_limits<double>::quiet_NaN()
                            : average_precision(points, all);
}

/// Paddle's bin, computed in the type of the scores.
template <typename T>
int64_t bin_of(T score, int64_t thresholds, int64_t row) {
  ARGOSY_CHECK(score >= 0 && score <= 1,
               "metrics.Auc",
               "score {} in row {} is no probability, as num_thresholds = {} needs: apply sigmoid "
               "or softmax, or leave num_thresholds at 0",
               score,
               row,
               thresholds);
  return static_cast<int64_t>(score * static_cast<T>(thresholds));
}

constexpr int64_t kNanBin = -1;

std::vector<int64_t> bins_of(const at::Tensor& scores, int64_t thresholds) {
  std::vector<int64_t> bins;
  bins.reserve(static_cast<size_t>(scores.numel()));
  auto add = [&](const auto* score) {
    for (int64_t i = 0; i < scores.numel(); ++i) {
      bins.push_back(std::isnan(score[i]) ? kNanBin : bin_of(score[i], thresholds, i));
    }
  };
  if (scores.scalar_type() == at::kDouble) {
    add(scores.data_ptr<double>());
  } else {
    add(scores.data_ptr<float>());
  }
  return bins;
}

}  // namespace

Auc::Auc(const AucOptions& options) : options_(options) {
  ARGOSY_CHECK(options.num_thresholds >= 0 && options.num_thresholds <= (int64_t{1} << 24),
               "metrics.Auc",
               "num_thresholds must be 0 (exact) to 16777216, got {}",
               options.num_thresholds);
  if (options.num_thresholds > 0) {
    positive_.resize(static_cast<size_t>(options.num_thresholds) + 1);
    negative_.resize(positive_.size());
  }
}

void Auc::update(const at::Tensor& scores, const at::Tensor& labels) {
  const BinaryBatch batch = binary_batch("metrics.Auc", scores, labels, ScorePairs::kAllowed);
  if (options_.num_thresholds > 0) {
    const std::vector<int64_t> bins = bins_of(batch.scores, options_.num_thresholds);
    for (size_t i = 0; i < bins.size(); ++i) {
      ++(bins[i] == kNanBin ? nans_ : (batch.labels[i] ? positive_ : negative_)[bins[i]]);
    }
    return;
  }
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const double score = batch.score(static_cast<int64_t>(i));
    if (std::isnan(score)) {
      ++nans_;
    } else {
      (batch.labels[i] ? positives_ : negatives_).push_back(score);
    }
  }
}

double Auc::compute(const comm::Group& group) const {
  const bool nan = all_reduced({nans_}, group)[0] > 0;
  std::vector<RocPoint> points;
  if (options_.num_thresholds == 0) {
    const std::vector<double> positives = gathered(positives_, group);
    const std::vector<double> negatives = gathered(negatives_, group);
    if (options_.curve == Curve::kRoc) {  // of many samples the points would be the most memory
      const double area = roc_area_of_sorted(positives, negatives);
      return nan ? std::numeric_limits<double>::quiet_NaN() : area;
    }
    points = roc_points(positives, negatives);
  } else {
    const std::vector<int64_t> positive = all_reduced(positive_, group);
    const std::vector<int64_t> negative = all_reduced(negative_, group);
    for (size_t i = positive.size(); i-- > 0;) {
      points.push_back({positive[i], negative[i]});
    }
  }
  return nan ? std::numeric_limits<double>::quiet_NaN() : area_under(options_.curve, points);
}

void Auc::reset() {
  *this = Auc(options_);
}

State Auc::state() const {
  State state = {static_cast<int64_t>(options_.curve), options_.num_thresholds, nans_};
  state.insert(state.end(), positive_.begin(), positive_.end());
  state.insert(state.end(), negative_.begin(), negative_.end());
  for (const auto* scores : {&positives_, &negatives_}) {
    state.push_back(static_cast<int64_t>(scores->size()));
    std::transform(scores->begin(), scores->end(), std::back_inserter(state), bits_of);
  }
  return state;
}

void Auc::load_state(const State& state) {
  StateReader reader("metrics.Auc", state);
  reader.expect(static_cast<int64_t>(options_.curve), "curve");
  reader.expect(options_.num_thresholds, "num_thresholds");
  Auc loaded(options_);
  loaded.nans_ = reader.next_count();
  for (auto* counts : {&loaded.positive_, &loaded.negative_}) {
    std::generate(counts->begin(), counts->end(), [&] { return reader.next_count(); });
  }
  for (auto* scores : {&loaded.positives_, &loaded.negatives_}) {
    const State bits = reader.take(reader.next_count());
    std::transform(bits.begin(), bits.end(), std::back_inserter(*scores), double_of);
    ARGOSY_CHECK(
        std::none_of(scores->begin(), scores->end(), [](double s) { return std::isnan(s); }),
        "metrics.Auc",
        "the state is damaged: it holds a score that is not a number");
  }
  reader.end();
  *this = std::move(loaded);
}

void Auc::merge_state(const State& other) {
  Auc more(options_);
  more.load_state(other);
  Auc both = *this;
  merge_counts("metrics.Auc", {&both.nans_, 1}, {&more.nans_, 1});
  merge_counts("metrics.Auc", both.positive_, more.positive_);
  merge_counts("metrics.Auc", both.negative_, more.negative_);
  both.positives_.insert(both.positives_.end(), more.positives_.begin(), more.positives_.end());
  both.negatives_.insert(both.negatives_.end(), more.negatives_.begin(), more.negatives_.end());
  *this = std::move(both);
}

}  // namespace argosy::metrics
