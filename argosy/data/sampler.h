#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "argosy/data/epoch_cursor.h"

namespace argosy::data {

/// An order of sample indices for each epoch. It is a pure function of the epoch's number.
///
/// It is a handle: copies share the epoch counter, so `sampler.set_epoch(3)` also reaches the
/// loader that took a copy. Epochs advance by themselves; set_epoch() chooses another. Your own
/// order needs no class:
///
///     data::Sampler evens(n / 2, [=](int64_t epoch) { return every_second(n, epoch); });
///
/// Thread-safety: order() may be called from any thread; the rest belongs to the iterating thread.
class Sampler {
 public:
  using Order = std::function<std::vector<int64_t>(int64_t epoch)>;

  /// `size`: number of indices that each epoch's order has.
  Sampler(int64_t size, Order order);

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] std::vector<int64_t> order(int64_t epoch) const { return order_(epoch); }
  /// Returns order() of the next epoch, and advances the counter.
  [[nodiscard]] std::vector<int64_t> next_epoch();

  [[nodiscard]] int64_t epoch() const { return cursor_->epoch(); }
  void set_epoch(int64_t epoch) { cursor_->set_epoch(epoch); }

 private:
  friend class BatchSampler;
  int64_t size_;
  Order order_;
  std::shared_ptr<EpochCursor> cursor_ = std::make_shared<EpochCursor>();
};

/// Yields 0, 1, … n - 1 in every epoch.
class SequenceSampler : public Sampler {
 public:
  explicit SequenceSampler(int64_t n);
};

struct RandomSamplerOptions {
  /// It is added to the epoch's number. The same seed gives the same orders in every run.
  uint64_t seed = 0;
};

/// Yields a new permutation in each epoch: torch.randperm with the seed `seed + epoch`.
class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t n, const RandomSamplerOptions& options = {});
};

struct DistributedSamplerOptions {
  int num_replicas = 1;  ///< ranks that share the data
  int rank = 0;          ///< this one, 0 to num_replicas - 1
  bool shuffle = true;   ///< PyTorch's default; Paddle's batch sampler starts with false
  uint64_t seed = 0;     ///< must be equal on all ranks
  /// Cuts the tail so that all ranks get equally many samples; otherwise the head is repeated.
  bool drop_last = false;
};

/// PyTorch's DistributedSampler, bit for bit: rank r takes every num_replicas-th index from r on.
///
/// Every rank gets equally many samples. With padding some samples come twice; use
/// EvaluationSampler for exact evaluation.
/// Source: torch/utils/data/distributed.py, 2.15.
class DistributedSampler : public Sampler {
 public:
  explicit DistributedSampler(int64_t n, const DistributedSamplerOptions& options = {});
};

}  // namespace argosy::data
