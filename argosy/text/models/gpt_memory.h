#pragma once

#include <cstdint>

#include "argosy/engine/step_memory.h"
#include "argosy/text/models/gpt_options.h"

namespace argosy::text {

/// A step of a Gpt, as step_memory() takes it.
struct StepShape {
  int64_t sequences = 1;
  int64_t tokens = 0;      ///< of each sequence; 0: the model's context
  bool bf16 = false;       ///< products are computed under autocast
  bool recompute = false;  ///< each block is called by parallel::recompute()
  /// Ranks divide the parameters (stage 3), so that 16-bit copies of them are not kept.
  bool divided = false;
  /// Parameters are bf16, and all is computed so: ShardOptions::mixed_precision. Not with `bf16`.
  bool pure_bf16 = false;
};

/// Returns what GptImpl::loss() and its backward hold on the CPU, by formula: for each block about
/// 16·width numbers for each token with GELU and as many heads of keys as of queries.
/// Errors: UsageError for dropout, whose attention is not ours, and for a shape that does not fit.
[[nodiscard]] engine::StepMemory step_memory(const GptOptions& options, const StepShape& shape);

}  // namespace argosy::text
