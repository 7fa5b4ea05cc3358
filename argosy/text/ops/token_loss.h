#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace argosy::text::ops {

/// Returns the mean cross entropy of the logits `hidden` · `weight`ᵀ, 0-dim f32, over the tokens
/// whose target is not `ignore_index`. NaN if there are none, as in libtorch.
///
/// Shape: hidden [R, C], weight [V, C], targets [R] of int64.
/// Errors: UsageError for a target that is neither in 0 to V - 1 nor ignored (on the CPU).
[[nodiscard]] at::Tensor token_loss(const at::Tensor& hidden,
                                    const at::Tensor& weight,
                                    const at::Tensor& targets,
                                    int64_t ignore_index = -100);

/// Returns how many rows of logits are in memory at a time.
[[nodiscard]] int64_t rows_of_logits(int64_t rows, int64_t classes);

}  // namespace argosy::text::ops
