#pragma once

#include <cstdint>
#include <span>

#include "argosy/data/batch_sampler.h"

namespace argosy::data {

struct BucketBatchSamplerOptions {
  int64_t batch_size = 1;  ///< samples of a batch on each rank
  int num_replicas = 1;    ///< ranks that share the data
  int rank = 0;            ///< this one, 0 to num_replicas - 1
  bool shuffle = true;  ///< a new order in each epoch; otherwise the data set's, bucket by bucket
  bool drop_last = false;  ///< leave out a short last batch
  /// Deals to so many virtual ranks; this process has a contiguous range of them. 0: to the ranks.
  int64_t virtual_ranks = 0;
  int64_t micro_batches = 1;  ///< batches of each virtual rank in an update
  uint64_t seed = 0;          ///< mixed with the epoch; must be equal on all ranks
  /// So many batches of each rank are sorted by length together. More of them mean less padding,
  /// and that the same samples meet in a batch more often.
  int64_t bucket_batches = 64;
};

/// Batches of samples of like length, for data whose batches are padded to their longest sample.
///
///     data::BucketBatchSampler sampler(lines.lengths(), {.batch_size = 32, .seed = 7});
///     data::DataLoader loader(lines, sampler, {.num_workers = 2});
///
/// The samples are shuffled, cut into buckets, and sorted by length in each bucket. The batches of
/// all ranks for one step lie side by side there, so that no rank waits for one with longer
/// samples. Then the steps are shuffled. A short last step has samples of any length. Everything
/// else is as with DistributedBatchSampler: every rank gets equally many batches and samples, the
/// order depends on seed and epoch alone, virtual ranks make it independent of the number of
/// processes, and a loop resumes in the middle of an epoch. Errors: UsageError for the options of
/// DistributedBatchSampler, for bucket_batches below 1 and for a negative length. Cost: an epoch's
/// order of a million samples takes 0.2 s.
class BucketBatchSampler : public DistributedBatchSampler {
 public:
  /// `lengths`: of each sample, in any unit. They are copied.
  explicit BucketBatchSampler(std::span<const int64_t> lengths,
                              const BucketBatchSamplerOptions& options = {});
};

}  // namespace argosy::data
