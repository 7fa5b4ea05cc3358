#include "argosy/metrics/throughput.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"
#include "argosy/metrics/reduce_counts.h"

namespace argosy::metrics {
namespace {

int64_t longest(int64_t nanoseconds, const comm::Group& group) {
  if (group.valid() && group.size() > 1) {
    comm::all_reduce(
        at::from_blob(&nanoseconds, {1}, at::kLong), group, {.op = comm::ReduceOp::kMax});
  }
  return nanoseconds;
}

}  // namespace

Throughput::Throughput(ThroughputOptions options) : options_(std::move(options)) {
  if (!options_.clock) {
    options_.clock = [] {
      return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch());
    };
  }
  reset();
}

void Throughput::update(const at::Tensor& /*output*/, const at::Tensor& labels) {
  ARGOSY_CHECK(labels.defined() && labels.dim() >= 1,
               "metrics.Throughput",
               "expected labels of a batch, whose first size counts, got {}",
               labels.defined() ? "a tensor without dimensions" : "an undefined tensor");
  update(labels.size(0));
}

void Throughput::update(int64_t samples) {
  ARGOSY_CHECK(samples >= 0, "metrics.Throughput", "samples must not be negative, got {}", samples);
  samples_ += samples;
}

double Throughput::compute(const comm::Group& group) const {
  const int64_t nanoseconds = longest(elapsed().count(), group);
  const int64_t samples = count(group);
  return nanoseconds <= 0
             ? std::numeric_limits<double>::quiet_NaN()
             : static_cast<double>(samples) / (static_cast<double>(nanoseconds) * 1e-9);
}

int64_t Throughput::count(const comm::Group& group) const {
  return all_reduced({samples_}, group)[0];
}

void Throughput::reset() {
  start_ = options_.clock();
  samples_ = 0;
}

State Throughput::state() const {
  return {samples_, std::max<int64_t>(elapsed().count(), 0)};
}

void Throughput::load_state(const State& state) {
  StateReader reader("metrics.Throughput", state);
  const int64_t samples = reader.next_count();
  const std::chrono::nanoseconds passed(reader.next_count());
  reader.end();
  samples_ = samples;
  start_ = options_.clock() - passed;
}

void Throughput::merge_state(const State& other) {
  Throughput more(options_);
  more.load_state(other);
  merge_counts("metrics.Throughput", {&samples_, 1}, {&more.samples_, 1});
  start_ = std::min(start_, more.start_);
}

}  // namespace argosy::metrics
