#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/kernels/parallel.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {

/// Returns the precision of a tensor that a rule can work on.
/// Errors: UsageError `[where] name: expected …` for another dtype or layout, or a tensor without
/// values.
[[nodiscard]] Precision checked_precision(const std::string& where,
                                          const std::string& name,
                                          const at::Tensor& tensor);

/// Returns the type of a parameter's states: f32 for 16 bits, else its own.
[[nodiscard]] at::ScalarType state_type(const at::Tensor& parameter);

/// Returns pieces of these tensors' elements for kernels::for_each_piece(). Tensors that are not on
/// the CPU give none.
[[nodiscard]] std::vector<kernels::Piece> cut(const std::vector<at::Tensor>& tensors);

/// Returns the sum of squares of each dense tensor, computed in parallel, with the same bits for
/// any number of threads, and on a device.
[[nodiscard]] std::vector<ExactSum> sums_of_squares(const std::vector<at::Tensor>& tensors);

}  // namespace argosy::optim
