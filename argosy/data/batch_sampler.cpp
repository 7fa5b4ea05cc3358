#include "argosy/data/batch_sampler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/even_part.h"
#include "argosy/data/checks.h"
#include "argosy/data/permutation.h"
#include "argosy/data/random.h"

namespace argosy::data {
namespace {

int64_t count_batches(int64_t samples, int64_t batch_size, bool drop_last) {
  return drop_last ? samples / batch_size : ceil_div(samples, batch_size);
}

using Options = DistributedBatchSamplerOptions;

int64_t batches_per_rank(int64_t n, const Options& options) {
  check_samples("data.DistributedBatchSampler", n);
  check_batch_size("data.DistributedBatchSampler", options.batch_size);
  check_rank("data.DistributedBatchSampler", options.rank, options.num_replicas);
  return count_batches(ceil_div(n, options.num_replicas), options.batch_size, options.drop_last);
}

uint32_t shuffle_seed(const Options& options, int64_t epoch) {
  if (options.seed != 0) {
    return static_cast<uint32_t>(mix(options.seed, static_cast<uint64_t>(epoch)));
  }
  ARGOSY_CHECK(epoch <= std::numeric_limits<uint32_t>::max(),
               "data.DistributedBatchSampler",
               "epoch must be below 2^32 to shuffle in Paddle's order, got {}. Set .seed",
               epoch);
  return static_cast<uint32_t>(epoch);
}

/// This rank's share of the padded list: blocks of a batch in turn, then an equal piece of what is
/// left over.
std::vector<int64_t> deal(const std::vector<int64_t>& indices, const Options& options) {
  const auto total = static_cast<int64_t>(indices.size());
  const int64_t round = options.batch_size * options.num_replicas;
  const int64_t left_over = total % round;
  const int64_t last = left_over / options.num_replicas;
  std::vector<int64_t> mine;
  mine.reserve(total / options.num_replicas);
  const auto take = [&](int64_t from, int64_t count) {
    mine.insert(mine.end(), indices.begin() + from, indices.begin() + from + count);
  };
  for (int64_t start = 0; start < total - left_over; start += round) {
    take(start + options.rank * options.batch_size, options.batch_size);
  }
  take(total - left_over + options.rank * last, last);
  return mine;
}

BatchPlan make_plan(int64_t n, const Options& options, int64_t epoch) {
  std::vector<int64_t> indices = in_order(n);
  pad_with_head(indices, ceil_div(n, options.num_replicas) * options.num_replicas);
  if (options.shuffle) {
    numpy_shuffle(indices, shuffle_seed(options, epoch));
  }
  return {deal(indices, options),
          {.batch_size = options.batch_size, .drop_last = options.drop_last}};
}

Sampler contiguous_piece(int64_t n, const EvaluationSamplerOptions& options) {
  check_samples("data.EvaluationSampler", n);
  check_rank("data.EvaluationSampler", options.rank, options.num_replicas);
  check_batch_size("data.EvaluationSampler", options.batch_size);
  const IndexRange share = even_part(n, options.num_replicas, options.rank);
  return {share.size(), [share](int64_t) {
            std::vector<int64_t> indices = in_order(share.size());
            std::for_each(indices.begin(), indices.end(), [&](int64_t& i) { i += share.begin; });
            return indices;
          }};
}

}  // namespace

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

DistributedBatchSampler::DistributedBatchSampler(int64_t n, const Options& options)
    : BatchSampler(batches_per_rank(n, options),
                   [n, options](int64_t epoch) { return make_plan(n, options, epoch); }) {}

EvaluationSampler::EvaluationSampler(int64_t n, const EvaluationSamplerOptions& options)
    : BatchSampler(contiguous_piece(n, options), {.batch_size = options.batch_size}) {}

}  // namespace argosy::data
