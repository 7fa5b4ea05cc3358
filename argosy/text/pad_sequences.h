#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"

namespace argosy::text {

/// Makes a batch of samples of different lengths: (inputs, targets), i64 [length] each.
///
///     data::DataLoader loader(mine, {.batch_size = 32}, text::PadSequences{.pad_id = 0});
///     for (auto& [inputs, targets] : loader) ...  // i64 [32, longest] each
///
/// Inputs are filled up with pad_id on the right, and targets with ignore_index, which
/// cross_entropy leaves out by default.
/// Errors: UsageError for multiple_of below 1; DataError naming the sample whose tensors are not
/// i64 [length] of one length.
struct PadSequences {
  int64_t pad_id = 0;
  int64_t ignore_index = -100;
  /// The length of a batch is the next multiple of this, for kernels that are faster so.
  int64_t multiple_of = 1;

  using Sample = std::pair<at::Tensor, at::Tensor>;
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> operator()(
      const std::vector<Sample>& samples, const data::BatchContext& context) const;
};

}  // namespace argosy::text
