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
  /// Returns what LoaderState::order holds: below 2^53, so that every JSON reader keeps it exactly.
  [[nodiscard]] uint64_t digest() const;
  /// Returns all batches one after another.
  [[nodiscard]] std::span<const int64_t> indices() const { return indices_; }

 private:
  std::vector<int64_t> indices_;
  std::vector<int64_t> ends_;  // of each batch, in indices_
};

/// Whose turn the batches of a sampler are, where a process goes through several virtual ranks.
///
/// An update of the optimizer takes `micros` batches of each virtual rank, or what is left of the
/// epoch. The batches of one virtual rank in an update follow each other. A process beyond the
/// virtual ranks is a spare. It reads along with one of them, and trains on nothing.
struct BatchTurns {
  int64_t virtual_ranks = 0;  ///< of all processes; 0: the batches are nobody's turn
  int64_t first = 0;          ///< the first virtual rank of this process
  int64_t leaves = 1;         ///< how many it has
  int64_t micros = 1;
  bool spare = false;  ///< `first` is another process's

  /// Returns the turns of process `rank`. 0 virtual ranks: nobody's turns.
  [[nodiscard]] static BatchTurns of(int64_t virtual_ranks,
                                     int processes,
                                     int rank,
                                     int64_t micros);

  friend bool operator==(const BatchTurns&, const BatchTurns&) = default;

  /// One of this process's virtual ranks, and which of its batches.
  struct Turn {
    int64_t leaf = 0;
    int64_t batch = 0;
  };
  /// Returns whose turn batch `number` of the process is, where each virtual rank has `each` in an
  /// epoch.
  [[nodiscard]] Turn turn_of(int64_t number, int64_t each) const;
  /// Returns how many batches of a virtual rank are in the updates that are complete after `done`
  /// batches of the process.
  [[nodiscard]] int64_t complete(int64_t done, int64_t each) const;
  /// Returns the number of updates that `batches` of the process make.
  [[nodiscard]] int64_t updates(int64_t batches) const;
  /// Errors: UsageError for a number that complete() does not return.
  void check_complete(int64_t position, int64_t each) const;
};

/// Returns the batches of several virtual ranks, which are equally many, in their turns.
[[nodiscard]] BatchPlan in_turns(std::span<const BatchPlan> plans, int64_t micros);

/// Batches of sample indices for each epoch. A DataLoader reads in their order.
///
///     data::BatchSampler sampler(data::RandomSampler(n, {.seed = 7}), {.batch_size = 32});
///     for (std::span<const int64_t> batch : sampler) ...   // epoch 0; the next loop is epoch 1
///
/// A handle: copies share the epoch counter (a Sampler's too), so set_epoch() on your copy reaches
/// the loader. Give a sampler to one loader only. Position: state() counts what the loop has
/// received, the current batch included; with BatchTurns it counts the batches of one virtual rank
/// in the updates that are complete, so that it is the same on any number of processes.
/// Thread-safety: plan() may be called from any thread; the
/// rest belongs to the iterating thread.
class BatchSampler {
 public:
  using Plan = std::function<BatchPlan(int64_t epoch)>;

  BatchSampler(Sampler sampler, const BatchSamplerOptions& options);
  /// Takes your own batches of any sizes, by a pure function of the epoch's number.
  BatchSampler(int64_t batches, Plan plan);
  /// The same in turns of virtual ranks. `plan_of_first` gives the batches of virtual rank 0.
  BatchSampler(int64_t batches, Plan plan, const BatchTurns& turns, Plan plan_of_first);

  /// Batches per epoch.
  [[nodiscard]] int64_t size() const { return batches_; }
  [[nodiscard]] BatchPlan plan(int64_t epoch) const { return plan_(epoch); }

  [[nodiscard]] int64_t epoch() const { return cursor_->epoch(); }
  void set_epoch(int64_t epoch) { cursor_->set_epoch(epoch); }
  [[nodiscard]] SamplerState state() const;
  /// Lets the next loop yield exactly the remaining batches of `state.epoch`.
  void load_state(const SamplerState& state);

  class Iterator;
  /// Starts the next epoch.
  [[nodiscard]] Iterator begin();
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

  /// The counter that copies share. A loader advances it.
  [[nodiscard]] EpochCursor& cursor() { return *cursor_; }

  [[nodiscard]] const BatchTurns& turns() const { return turns_; }
  /// Batches per epoch of each virtual rank, or of this process without BatchTurns.
  [[nodiscard]] int64_t batches_each() const { return batches_ / turns_.leaves; }
  /// Returns a number for the epoch's batches: with BatchTurns the same on any number of processes.
  [[nodiscard]] uint64_t order_digest(int64_t epoch) const;

 private:
  int64_t batches_;
  Plan plan_;
  BatchTurns turns_{};
  Plan plan_of_first_{};
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
  /// Deals to so many virtual ranks; this process has a contiguous range of them. 0: to the ranks.
  int64_t virtual_ranks = 0;
  int64_t micro_batches = 1;  ///< batches of each virtual rank in an update
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

 protected:
  /// Returns the padded list of an epoch's samples in another order, from the list in order. It is
  /// a pure function of both.
  using Arrange = std::function<std::vector<int64_t>(std::vector<int64_t> padded, int64_t epoch)>;
  /// Deals what `arrange` returns, whatever `shuffle` says.
  DistributedBatchSampler(int64_t n,
                          const DistributedBatchSamplerOptions& options,
                          const Arrange& arrange);
};

struct EvaluationSamplerOptions {
  int64_t batch_size = 1;
  int num_replicas = 1;
  int rank = 0;
  int64_t virtual_ranks = 0;  ///< see DistributedBatchSamplerOptions
};

/// Yields every sample exactly once for any number of ranks. It pads and drops nothing.
///
/// Rank r takes one contiguous piece; the first n mod K ranks take one sample more. So all outputs
/// gathered in rank order are in the data set's order, files are read in order, and K = 1 is plain
/// sequential evaluation. Ranks may have different numbers of batches (by one at most), or none, so
/// gather or reduce after the loop, not inside it. With virtual ranks each of these has a piece,
/// cut into batches by itself, and a process has the pieces of its range one after the other.
class EvaluationSampler : public BatchSampler {
 public:
  explicit EvaluationSampler(int64_t n, const EvaluationSamplerOptions& options = {});
};

}  // namespace argosy::data
