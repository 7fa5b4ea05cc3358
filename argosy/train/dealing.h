#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "argosy/data/batch_sampler.h"

namespace argosy::train {

/// The order of a data set that fit() deals to the ranks: fleet::distributed_batch_sampler's.
struct Dealing {
  int64_t samples = 0;
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;
  friend bool operator==(const Dealing&, const Dealing&) = default;
};

/// A part of an epoch that was trained by so many ranks.
struct Leg {
  int64_t ranks = 1;
  int64_t batch_size = 1;  ///< per rank
  int64_t done = 0;        ///< batches of each rank
  friend bool operator==(const Leg&, const Leg&) = default;
};

/// The samples of an epoch that no leg has had, each once, in the epoch's order.
/// Cost: makes the epoch's order once for each rank of the first leg.
[[nodiscard]] std::vector<int64_t> remaining_samples(const Dealing& order,
                                                     int64_t epoch,
                                                     std::span<const Leg> legs);

/// The batches of `rank` where `ranks` share `samples`, each once: as many for every rank, of
/// `batch_size` but for the last one, which has what is left over, divided evenly (`drop_last`:
/// there is no such batch). Where fewer samples than ranks are left, the batch before has them too;
/// only fewer samples than ranks altogether come more than once.
[[nodiscard]] data::BatchPlan deal(std::span<const int64_t> samples,
                                   int64_t batch_size,
                                   int64_t ranks,
                                   int64_t rank,
                                   bool drop_last);

}  // namespace argosy::train
