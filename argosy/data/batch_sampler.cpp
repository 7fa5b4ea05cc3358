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

constexpr const char* kWhere = "data.DistributedBatchSampler";

/// The ranks to which samples are dealt.
int64_t dealt_to(const auto& options) {
  return options.virtual_ranks > 0 ? options.virtual_ranks : options.num_replicas;
}

/// The batches of each rank to which samples are dealt.
int64_t batches_of_each(int64_t n, const Options& options) {
  check_samples(kWhere, n);
  check_batch_size(kWhere, options.batch_size);
  check_rank(kWhere, options.rank, options.num_replicas);
  check_virtual_ranks(kWhere, options.virtual_ranks);
  ARGOSY_CHECK(options.micro_batches > 0,
               kWhere,
               "micro_batches must be positive, got {}",
               options.micro_batches);
  return count_batches(ceil_div(n, dealt_to(options)), options.batch_size, options.drop_last);
}

BatchTurns turns_of(const Options& options) {
  return BatchTurns::of(
      options.virtual_ranks, options.num_replicas, options.rank, options.micro_batches);
}

uint32_t shuffle_seed(const Options& options, int64_t epoch) {
  if (options.seed != 0) {
    return static_cast<uint32_t>(mix(options.seed, static_cast<uint64_t>(epoch)));
  }
  ARGOSY_CHECK(epoch <= std::numeric_limits<uint32_t>::max(),
               kWhere,
               "epoch must be below 2^32 to shuffle in Paddle's order, got {}. Set .seed",
               epoch);
  return static_cast<uint32_t>(epoch);
}

/// The share of `rank` in the padded list: blocks of a batch in turn, then an equal piece of what
/// is left over.
BatchPlan deal(const std::vector<int64_t>& indices, const Options& options, int64_t rank) {
  const auto total = static_cast<int64_t>(indices.size());
  const int64_t ranks = dealt_to(options);
  const int64_t round = options.batch_size * ranks;
  const int64_t left_over = total % round;
  const int64_t last = left_over / ranks;
  std::vector<int64_t> mine;
  mine.reserve(total / ranks);
  const auto take = [&](int64_t from, int64_t count) {
    mine.insert(mine.end(), indices.begin() + from, indices.begin() + from + count);
  };
  for (int64_t start = 0; start < total - left_over; start += round) {
    take(start + rank * options.batch_size, options.batch_size);
  }
  take(total - left_over + rank * last, last);
  return {std::move(mine), {.batch_size = options.batch_size, .drop_last = options.drop_last}};
}

/// The batches of `ranks`, in their turns. `indices`: the padded list, in the epoch's order.
BatchPlan make_plan(const std::vector<int64_t>& indices,
                    const Options& options,
                    const IndexRange& ranks) {
  std::vector<BatchPlan> plans;
  for (int64_t rank = ranks.begin; rank < ranks.end; ++rank) {
    plans.push_back(deal(indices, options, rank));
  }
  return in_turns(plans, options.micro_batches);
}

/// All samples, and so many of the first ones again that each rank gets equally many.
std::vector<int64_t> padded_list(int64_t n, const Options& options) {
  std::vector<int64_t> indices = in_order(n);
  pad_with_head(indices, ceil_div(n, dealt_to(options)) * dealt_to(options));
  return indices;
}

/// Paddle's order of an epoch.
std::vector<int64_t> shuffled(std::vector<int64_t> padded, const Options& options, int64_t epoch) {
  if (options.shuffle) {
    numpy_shuffle(padded, shuffle_seed(options, epoch));
  }
  return padded;
}

/// The pieces of this process.
std::vector<IndexRange> evaluation_pieces(int64_t n, const EvaluationSamplerOptions& options) {
  const int64_t all = dealt_to(options);
  const IndexRange own = even_part(all, options.num_replicas, options.rank);
  std::vector<IndexRange> pieces;
  for (int64_t each = own.begin; each < own.end; ++each) {
    pieces.push_back(even_part(n, all, each));
  }
  return pieces;
}

/// They come one after the other.
BatchPlan make_evaluation_plan(int64_t n, const EvaluationSamplerOptions& options) {
  BatchPlan plan;
  for (const IndexRange& piece : evaluation_pieces(n, options)) {
    std::vector<int64_t> indices = in_order(piece.size());
    std::for_each(indices.begin(), indices.end(), [&](int64_t& i) { i += piece.begin; });
    const BatchPlan batches(std::move(indices), {.batch_size = options.batch_size});
    for (int64_t batch = 0; batch < batches.size(); ++batch) {
      plan.add(batches[batch]);
    }
  }
  return plan;
}

int64_t count_evaluation_batches(int64_t n, const EvaluationSamplerOptions& options) {
  constexpr const char* kSampler = "data.EvaluationSampler";
  check_samples(kSampler, n);
  check_rank(kSampler, options.rank, options.num_replicas);
  check_batch_size(kSampler, options.batch_size);
  check_virtual_ranks(kSampler, options.virtual_ranks);
  int64_t batches = 0;
  for (const IndexRange& piece : evaluation_pieces(n, options)) {
    batches += ceil_div(piece.size(), options.batch_size);
  }
  return batches;
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

uint64_t BatchPlan::digest() const {
  uint64_t hash = 14695981039346656037U;  // FNV-1a, of whole numbers
  const auto add = [&hash](int64_t number) {
    hash = (hash ^ static_cast<uint64_t>(number)) * 1099511628211U;
    hash ^= hash >> 32;  // the high bits reach the low ones
  };
  for (int64_t batch = 0; batch < size(); ++batch) {
    add(static_cast<int64_t>((*this)[batch].size()));
    for (const int64_t index : (*this)[batch]) {
      add(index);
    }
  }
  return hash & ((uint64_t{1} << 53) - 1);
}

BatchPlan in_turns(std::span<const BatchPlan> plans, int64_t micros) {
  if (plans.size() == 1) {
    return plans.front();
  }
  BatchPlan all;
  const int64_t batches = plans.empty() ? 0 : plans.front().size();
  for (int64_t begin = 0; begin < batches; begin += micros) {
    for (const BatchPlan& plan : plans) {
      for (int64_t batch = begin; batch < std::min(begin + micros, batches); ++batch) {
        all.add(plan[batch]);
      }
    }
  }
  return all;
}

BatchTurns BatchTurns::of(int64_t virtual_ranks, int processes, int rank, int64_t micros) {
  BatchTurns turns{.virtual_ranks = virtual_ranks, .first = rank, .micros = micros};
  if (virtual_ranks > 0) {
    const IndexRange own = even_part(virtual_ranks, processes, rank);
    turns.spare = own.size() == 0;
    turns.first = turns.spare ? rank % virtual_ranks : own.begin;
    turns.leaves = turns.spare ? 1 : own.size();
  }
  return turns;
}

BatchTurns::Turn BatchTurns::turn_of(int64_t number, int64_t each) const {
  if (leaves == 1) {
    return {.batch = number};
  }
  const int64_t begin =
      number / (leaves * micros) * micros;  // of the update, in each one's batches
  const int64_t in_update = std::min(micros, each - begin);
  const int64_t rest = number - begin * leaves;
  return {rest / in_update, begin + rest % in_update};
}

int64_t BatchTurns::complete(int64_t done, int64_t each) const {
  if (leaves == 1) {  // fit() may go on with another number of micro-batches
    return done;
  }
  return done == each * leaves ? each : done / (leaves * micros) * micros;
}

int64_t BatchTurns::updates(int64_t batches) const {
  return ceil_div(batches / leaves, micros);
}

void BatchTurns::check_complete(int64_t position, int64_t each) const {
  ARGOSY_CHECK(leaves == 1 || position % micros == 0 || position == each,
               "data.load_state",
               "position {} lies inside of an update, which takes {} batches of each virtual rank. "
               "Was the state saved with another number of micro-batches?",
               position,
               micros);
}

BatchSampler::BatchSampler(int64_t batches, Plan plan, const BatchTurns& turns, Plan plan_of_first)
    : BatchSampler(batches, std::move(plan)) {
  turns_ = turns;
  plan_of_first_ = std::move(plan_of_first);
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

SamplerState BatchSampler::state() const {
  const SamplerState state = cursor_->state();
  return {state.epoch, turns_.complete(state.position, batches_each())};
}

void BatchSampler::load_state(const SamplerState& state) {
  ARGOSY_CHECK(
      state.position <= batches_each(),
      "data.load_state",
      "position {} lies behind the {} batches of an epoch. Was the state saved with another "
      "data set, batch size or number of ranks?",
      state.position,
      batches_each());
  turns_.check_complete(state.position, batches_each());
  cursor_->load({state.epoch, state.position * turns_.leaves});
}

uint64_t BatchSampler::order_digest(int64_t epoch) const {
  return (turns_.virtual_ranks == 0 ? plan_ : plan_of_first_)(epoch).digest();
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
    : DistributedBatchSampler(n, options, [options](std::vector<int64_t> padded, int64_t epoch) {
        return shuffled(std::move(padded), options, epoch);
      }) {}

DistributedBatchSampler::DistributedBatchSampler(int64_t n,
                                                 const Options& options,
                                                 const Arrange& arrange)
    : BatchSampler(
          batches_of_each(n, options) * turns_of(options).leaves,
          [n, options, arrange](int64_t epoch) {
            const BatchTurns turns = turns_of(options);
            return make_plan(arrange(padded_list(n, options), epoch),
                             options,
                             {turns.first, turns.first + turns.leaves});
          },
          turns_of(options),
          [n, options, arrange](int64_t epoch) {
            return make_plan(arrange(padded_list(n, options), epoch), options, {0, 1});
          }) {}

EvaluationSampler::EvaluationSampler(int64_t n, const EvaluationSamplerOptions& options)
    : BatchSampler(count_evaluation_batches(n, options),
                   [n, options](int64_t /*epoch*/) { return make_evaluation_plan(n, options); }) {}

}  // namespace argosy::data
