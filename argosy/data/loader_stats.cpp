#include "argosy/data/loader_stats.h"

#include <fmt/format.h>

#include <cmath>

namespace argosy::data {

double LoaderStats::input_bound() const {
  const Seconds whole = waited + used;
  return whole.count() > 0 ? waited / whole : 0.0;
}

std::string LoaderStats::to_string() const {
  if (epoch < 0) {
    return "no epoch yet";
  }
  std::string text = fmt::format(
      "epoch {}: {} batches, {} samples in {:.2f} s; input-bound: {:.0f} % (waited {:.2f} s, of it "
      "{:.2f} s for the first batch); {:.1f} MB of batches",
      epoch,
      batches,
      samples,
      (waited + used).count(),
      std::floor(100 * input_bound() + 0.5),
      waited.count(),
      first_batch.count(),
      static_cast<double>(pool_bytes) / 1e6);
  if (bad.skipped > 0) {
    text += fmt::format("; {} bad samples skipped", bad.skipped);
  }
  if (bad.replaced > 0) {
    text += fmt::format("; {} bad samples replaced", bad.replaced);
  }
  return text;
}

namespace detail {

void LoopClock::begin(LoaderStats& stats, int64_t epoch) {
  stats = {};
  stats.epoch = epoch;
  last_ = Clock::now();
  first_ = true;
}

void LoopClock::asks(LoaderStats& stats) {
  const Clock::time_point now = Clock::now();
  stats.used += first_ ? LoaderStats::Seconds(0) : LoaderStats::Seconds(now - last_);
  last_ = first_ ? last_ : now;
}

void LoopClock::has(LoaderStats& stats) {
  const Clock::time_point now = Clock::now();
  stats.waited += now - last_;
  if (first_) {
    stats.first_batch = now - last_;
  }
  first_ = false;
  last_ = now;
}

}  // namespace detail
}  // namespace argosy::data
