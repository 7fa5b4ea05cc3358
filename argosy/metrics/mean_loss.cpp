#include "argosy/metrics/mean_loss.h"

#include <limits>

#include "argosy/base/check.h"
#include "argosy/metrics/reduce_counts.h"

namespace argosy::metrics {
namespace {}  // namespace

void MeanLoss::update(const at::Tensor& loss, int64_t n) {
  ARGOSY_CHECK(loss.defined() && loss.numel() == 1,
               "metrics.MeanLoss",
               "the loss must be one number, got {} elements. Reduce it first: loss.mean()",
               loss.defined() ? loss.numel() : 0);
  update(loss.item<double>(), n);
}

void MeanLoss::update(double loss, int64_t n) {
  ARGOSY_CHECK(n >= 0, "metrics.MeanLoss", "n must not be negative, got {}", n);
  if (n > 0) {
    sum_.add(loss * static_cast<double>(n));
    count_ += n;
  }
}

double MeanLoss::compute(const comm::Group& group) const {
  const double sum = sum_.all_reduced(group).value();
  const int64_t samples = count(group);
  return samples == 0 ? std::numeric_limits<double>::quiet_NaN()
                      : sum / static_cast<double>(samples);
}

int64_t MeanLoss::count(const comm::Group& group) const {
  return all_reduced({count_}, group)[0];
}

void MeanLoss::reset() {
  *this = MeanLoss();
}

State MeanLoss::state() const {
  State state = sum_.state();
  state.push_back(count_);
  return state;
}

void MeanLoss::load_state(const State& state) {
  StateReader reader("metrics.MeanLoss", state);
  MeanLoss loaded;
  loaded.sum_.load_state(reader.take(static_cast<int64_t>(sum_.state().size())));
  loaded.count_ = reader.next_count();
  reader.end();
  *this = loaded;
}

void MeanLoss::merge_state(const State& other) {
  MeanLoss more;
  more.load_state(other);
  MeanLoss both = *this;
  merge_counts("metrics.MeanLoss", {&both.count_, 1}, {&more.count_, 1});
  both.sum_.merge_state(more.sum_.state());
  *this = both;
}

}  // namespace argosy::metrics
