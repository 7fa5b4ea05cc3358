#pragma once

#include <cstdint>

#include "argosy/text/ops/kernel_kinds.h"

// Internal to the room. Rows of `classes` logits, one after the other.
namespace argosy::text::kernels {

struct LossShape {
  int64_t rows = 0;
  int64_t classes = 0;
  int64_t ignore_index = -100;
  float share = 1;  ///< of a row in the mean
  bool gradient = true;
};

/// losses[row] = the cross entropy of a row, not yet its share of the mean; 0 where the target is
/// ignored. With `gradient` the logits become the gradients of the mean.
void token_losses(const Target& logits,
                  const int64_t* targets,
                  const LossShape& shape,
                  double* losses);

}  // namespace argosy::text::kernels
