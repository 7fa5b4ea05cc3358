#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "argosy/data/epoch_cursor.h"
#include "argosy/data/sampler.h"

namespace argosy::data {

struct BatchSamplerOptions {
  int64_t batch_size = 1;
  bool drop_last = false;  ///< leave out a short last batch
};

/// The batches of one epoch, as lists of sample indices.
class BatchPlan final {
 public:
  BatchPlan() = default;
  /// Cuts `indices` into batches.
  BatchPlan(std::vector<int64_t> indices, const BatchSamplerOptions& options);

  void add(std::span<const int64_t> batch);
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  [[nodiscard]] std::span<const int64_t> operator[](int64_t batch) const;
  /// Returns all batches one after another.
  [[nodiscard]] std::span<const int64_t> indices() const { return indices_; }

 private:
  std::vector<int64_t> indices_;
  std::vector<int64_t> ends_;  // of each batch, in indices_
};

/// Batches of sample indices for each epoch. A DataLoader reads in their order.
///
///     data::BatchSampler sampler(data::RandomSampler(n, {.seed = 7}), {.batch_size = 32});
///     for (std::span<const int64_t> batch : sampler) ...   // epoch 0; the next loop is epoch 1
///
/// A handle: copies share the epoch counter (a Sampler's too), so set_epoch() on your copy reaches
/// the loader. Give a sampler to one loader only. Position: state() counts what the loop has
/// received, the current batch included. Thread-safety: plan() may be called from any thread; the
/// rest belongs to the iterating thread.
class BatchSampler {
 public:
  using Plan = std::function<BatchPlan(int64_t epoch)>;

  BatchSampler(Sampler sampler, const BatchSamplerOptions& options);
  /// Takes your own batches of any sizes, by a pure function of the epoch's number.
  BatchSampler(int64_t batches, Plan plan);

  /// Batches per epoch.
  [[nodiscard]] int64_t size() const { return batches_; }
  [[nodiscard]] BatchPlan plan(int64_t epoch) const { return plan_(epoch); }

  [[nodiscard]] int64_t epoch() const { return cursor_->epoch(); }
  void set_epoch(int64_t epoch) { cursor_->set_epoch(epoch); }
  [[nodiscard]] SamplerState state() const { return cursor_->state(); }
  /// Lets the next loop yield exactly the remaining batches of `state.epoch`.
  void load_state(const SamplerState& state);

  class Iterator;
  /// Starts the next epoch.
  [[nodiscard]] Iterator begin();
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

  /// The counter that copies share. A loader advances it.
  [[nodiscard]] EpochCursor& cursor() { return *cursor_; }

 private:
  int64_t batches_;
  Plan plan_;
  std::shared_ptr<EpochCursor> cursor_;
};

class BatchSampler::Iterator final {
 public:
  using value_type = std::span<const int64_t>;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  value_type operator*() const { return (*plan_)[at_]; }
  Iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) {
    return it.at_ >= it.plan_->size();
  }

 private:
  friend class BatchSampler;
  Iterator(std::shared_ptr<EpochCursor> cursor, BatchPlan plan, const SamplerState& start);
  void report();

  std::shared_ptr<EpochCursor> cursor_;
  std::shared_ptr<const BatchPlan> plan_;
  int64_t epoch_;
  int64_t at_;
};

struct DistributedBatchSamplerOptions {
  int64_t batch_size = 1;  ///< samples of a batch on each rank
  int num_replicas = 1;    ///< ranks that share the data
  int rank = 0;            ///< this one, 0 to num_replicas - 1
  bool shuffle = false;    ///< Paddle's default
  bool drop_last = false;  ///< leave out a short last batch
  /// 0: exactly Paddle's order, which depends on the epoch alone. Any other seed is mixed with the
  /// epoch. It must be equal on all ranks.
  uint64_t seed = 0;
};

/// Paddle's DistributedBatchSampler, bit for bit (with seed 0).
///
/// The data is padded with its head to a multiple of the ranks, shuffled, and dealt in blocks of
/// batch_size: step by step, the ranks' batches laid side by side in rank order are the padded
/// (shuffled) list. Every rank gets equally many batches and samples. One difference: the epoch
/// also advances when shuffle is off, where no order depends on it.
/// Errors: UsageError for an epoch of 2^32 or more with shuffle, because NumPy takes no such seed.
/// Source: python/paddle/io/dataloader/batch_sampler.py, 3.3.1.
class DistributedBatchSampler : public BatchSampler {
 public:
  explicit DistributedBatchSampler(int64_t n, const DistributedBatchSamplerOptions& options = {});
};

struct EvaluationSamplerOptions {
  int64_t batch_size = 1;
  int num_replicas = 1;
  int rank = 0;
};

/// Yields every sample exactly once for any number of ranks. It pads and drops nothing.
///
/// Rank r takes one contiguous piece; the first n mod K ranks take one sample more. So all outputs
/// gathered in rank order are in the data set's order, files are read in order, and K = 1 is plain
/// sequential evaluation. Ranks may have different numbers of batches (by one at most), or none, so
/// gather or reduce after the loop, not inside it.
class EvaluationSampler : public BatchSampler {
 public:
  explicit EvaluationSampler(int64_t n, const EvaluationSamplerOptions& options = {});
};

}  // namespace argosy::data
