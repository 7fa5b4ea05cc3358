#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "argosy/data/batch_sampler.h"

namespace argosy::train {

/// The order in which fit() divides a data set among the ranks: that of
/// fleet::distributed_batch_sampler.
struct Dealing {
  int64_t samples = 0;
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;
  friend bool operator==(const Dealing&, const Dealing&) = default;
};

/// A part of an epoch, trained by a number of virtual ranks.
struct Leg {
  int64_t ranks = 1;
  int64_t batch_size = 1;  ///< per virtual rank
  int64_t done = 0;        ///< batches of each
  friend bool operator==(const Leg&, const Leg&) = default;
};

/// Returns the samples of an epoch that no leg has had, each once, in the epoch's order.
/// Cost: makes the epoch's order once per rank of the first leg.
[[nodiscard]] std::vector<int64_t> remaining_samples(const Dealing& order,
                                                     int64_t epoch,
                                                     std::span<const Leg> legs);

struct DealOptions {
  int64_t batch_size = 1;
  int64_t ranks = 1;
  int64_t rank = 0;        ///< the one that the batches are for
  bool drop_last = false;  ///< leave out the last batch, for the rest
};

/// Returns the batches of a rank when all ranks share `samples`, each sample once. Every rank has
/// the same number of batches of `batch_size`, and a last one for the rest, divided evenly. If the
/// rest is smaller than the number of ranks, the batch before takes it too. Samples repeat only if
/// there are fewer of them than ranks.
[[nodiscard]] data::BatchPlan deal(std::span<const int64_t> samples, const DealOptions& options);

}  // namespace argosy::train
