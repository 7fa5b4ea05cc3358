#pragma once

#include <cstdint>

#include "argosy/base/check.h"

namespace argosy::data {

/// Checks the options of a sampler. `where` names the class that was misused.
inline void check_samples(const char* where, int64_t n) {
  ARGOSY_CHECK(n >= 0, where, "number of samples must not be negative, got {}", n);
}

inline void check_rank(const char* where, int rank, int num_replicas) {
  ARGOSY_CHECK(num_replicas > 0, where, "num_replicas must be positive, got {}", num_replicas);
  ARGOSY_CHECK(rank >= 0 && rank < num_replicas,
               where,
               "rank must be from 0 to {} (num_replicas is {}), got {}",
               num_replicas - 1,
               num_replicas,
               rank);
}

inline void check_virtual_ranks(const char* where, int64_t virtual_ranks) {
  ARGOSY_CHECK(
      virtual_ranks >= 0, where, "virtual_ranks must not be negative, got {}", virtual_ranks);
}

inline void check_batch_size(const char* where, int64_t batch_size) {
  ARGOSY_CHECK(batch_size > 0, where, "batch_size must be positive, got {}", batch_size);
}

/// Checks the index for a view of a data set.
inline void check_index(const char* where, int64_t index, int64_t size) {
  ARGOSY_CHECK(index >= 0 && index < size,
               where,
               "index {} is outside the data set of {} samples",
               index,
               size);
}

/// Returns a / b, rounded up, for a >= 0 and b > 0.
inline int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace argosy::data
