#include "argosy/data/batch_sampler.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/data/checks.h"

namespace argosy::data {

BatchPlan::BatchPlan(std::vector<int64_t> indices, const BatchSamplerOptions& options)
    : indices_(std::move(indices)) {
  const auto n = static_cast<int64_t>(indices_.size());
  for (int64_t end = options.batch_size; end <= n; end += options.batch_size) {
    ends_.push_back(end);
  }
  if (!options.drop_last && n % options.batch_size != 0) {
    ends_.push_back(n);
  }
  indices_.resize(ends_.empty() ? 0 : ends_.back());
}

void BatchPlan::add(std::span<const int64_t> batch) {
  indices_.insert(indices_.end(), batch.begin(), batch.end());
  ends_.push_back(static_cast<int64_t>(indices_.size()));
}

std::span<const int64_t> BatchPlan::operator[](int64_t batch) const {
  const int64_t begin = batch == 0 ? 0 : ends_[batch - 1];
  return std::span(indices_).subspan(begin, ends_[batch] - begin);
}

namespace {

int64_t count_batches(int64_t samples, int64_t batch_size, bool drop_last) {
  return drop_last ? samples / batch_size : ceil_div(samples, batch_size);
}

}  // namespace

BatchSampler::BatchSampler(int64_t batches, Plan plan)
    : batches_(batches), plan_(std::move(plan)), cursor_(std::make_shared<EpochCursor>()) {
  ARGOSY_CHECK(
      batches >= 0, "data.BatchSampler", "number of batches must not be negative, got {}", batches);
  ARGOSY_CHECK(
      plan_ != nullptr, "data.BatchSampler", "expected a function from epoch to plan, got none");
}

BatchSampler::BatchSampler(Sampler sampler, const BatchSamplerOptions& options)
    : batches_(0), cursor_(sampler.cursor_) {
  check_batch_size("data.BatchSampler", options.batch_size);
  batches_ = count_batches(sampler.size(), options.batch_size, options.drop_last);
  plan_ = [sampler = std::move(sampler), options](int64_t epoch) {
    return BatchPlan(sampler.order(epoch), options);
  };
}

void BatchSampler::load_state(const SamplerState& state) {
  ARGOSY_CHECK(
      state.position <= size(),
      "data.load_state",
      "position {} lies behind the {} batches of an epoch. Was the state saved with another "
      "data set, batch size or number of ranks?",
      state.position,
      size());
  cursor_->load(state);
}

BatchSampler::Iterator BatchSampler::begin() {
  const SamplerState start = cursor_->begin();
  return {cursor_, plan(start.epoch), start};
}

BatchSampler::Iterator::Iterator(std::shared_ptr<EpochCursor> cursor,
                                 BatchPlan plan,
                                 const SamplerState& start)
    : cursor_(std::move(cursor)),
      plan_(std::make_shared<const BatchPlan>(std::move(plan))),
      epoch_(start.epoch),
      at_(start.position) {
  report();
}

BatchSampler::Iterator& BatchSampler::Iterator::operator++() {
  ++at_;
  report();
  return *this;
}

/// The batch at hand counts as consumed: a checkpoint is written after its step.
void BatchSampler::Iterator::report() {
  cursor_->consumed(epoch_, at_ + 1, plan_->size());
}

}  // namespace argosy::data
