#include "argosy/parallel/traffic/traffic_options.h"

#include <cmath>

#include "argosy/base/check.h"

namespace argosy::parallel {

void PowerSgdOptions::validate() const {
  constexpr const char* kWhere = "parallel.PowerSgdOptions";
  ARGOSY_CHECK(matrix_approximation_rank >= 1,
               kWhere,
               "matrix_approximation_rank: expected at least 1, got {}",
               matrix_approximation_rank);
  ARGOSY_CHECK(start_power_sgd_iter >= 0,
               kWhere,
               "start_power_sgd_iter: expected 0 or more, got {}",
               start_power_sgd_iter);
  ARGOSY_CHECK(std::isfinite(min_compression_rate) && min_compression_rate >= 0,
               kWhere,
               "min_compression_rate: expected a factor from 0 on, got {}",
               min_compression_rate);
}

void DgcOptions::validate() const {
  constexpr const char* kWhere = "parallel.DgcOptions";
  ARGOSY_CHECK(rampup_begin_step >= 0,
               kWhere,
               "rampup_begin_step: expected 0 or more, got {}",
               rampup_begin_step);
  ARGOSY_CHECK(rampup_step >= 1, kWhere, "rampup_step: expected at least 1, got {}", rampup_step);
  ARGOSY_CHECK(!sparsity.empty(), kWhere, "sparsity: expected at least one share, got none");
  for (const double share : sparsity) {
    ARGOSY_CHECK(share >= 0 && share < 1,
                 kWhere,
                 "sparsity: expected shares from 0 to below 1, got {}",
                 share);
  }
  ARGOSY_CHECK(
      min_elements >= 1, kWhere, "min_elements: expected at least 1, got {}", min_elements);
}

void LocalSgdOptions::validate() const {
  constexpr const char* kWhere = "parallel.LocalSgdOptions";
  ARGOSY_CHECK(k_steps >= 1, kWhere, "k_steps: expected at least 1, got {}", k_steps);
  ARGOSY_CHECK(begin_step >= 1, kWhere, "begin_step: expected at least 1, got {}", begin_step);
}

void AdaptiveLocalSgdOptions::validate() const {
  constexpr const char* kWhere = "parallel.AdaptiveLocalSgdOptions";
  ARGOSY_CHECK(
      init_k_steps >= 1, kWhere, "init_k_steps: expected at least 1, got {}", init_k_steps);
  ARGOSY_CHECK(begin_step >= 1, kWhere, "begin_step: expected at least 1, got {}", begin_step);
}

void DilocoOptions::validate() const {
  constexpr const char* kWhere = "parallel.DilocoOptions";
  ARGOSY_CHECK(sync_every >= 1, kWhere, "sync_every: expected at least 1, got {}", sync_every);
  ARGOSY_CHECK(std::isfinite(outer_lr) && outer_lr >= 0,
               kWhere,
               "outer_lr: expected a rate from 0 on, got {}",
               outer_lr);
  ARGOSY_CHECK(outer_momentum >= 0 && outer_momentum < 1,
               kWhere,
               "outer_momentum: expected a number from 0 to below 1, got {}",
               outer_momentum);
  ARGOSY_CHECK(fragments >= 1 && fragments <= sync_every,
               kWhere,
               "fragments: expected 1 to sync_every ({}), got {}",
               sync_every,
               fragments);
  ARGOSY_CHECK(fragment_sync_delay >= 0 && fragment_sync_delay < sync_every,
               kWhere,
               "fragment_sync_delay: expected 0 to below sync_every ({}), got {}",
               sync_every,
               fragment_sync_delay);
  ARGOSY_CHECK(fragment_update_alpha >= 0 && fragment_update_alpha <= 1,
               kWhere,
               "fragment_update_alpha: expected a share from 0 to 1, got {}",
               fragment_update_alpha);
  ARGOSY_CHECK(
      bits == 32 || bits == 8 || bits == 4, kWhere, "bits: expected 32, 8 or 4, got {}", bits);
}

}  // namespace argosy::parallel
