#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/kernels/parallel.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {

/// Precision of a tensor that a rule can work on.
/// Errors: UsageError `[where] name: expected …` for another dtype or layout, and without values.
[[nodiscard]] Precision checked_precision(const std::string& where,
                                          const std::string& name,
                                          const at::Tensor& tensor);

/// `tensor` as one flat range in the order of `like`, which is dense: itself where the strides
/// agree, else a copy.
[[nodiscard]] at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& tensor);

/// Pieces of these tensors' elements, for kernels::for_each_piece(); none of those that are not on
/// the CPU.
[[nodiscard]] std::vector<kernels::Piece> cut(const std::vector<at::Tensor>& tensors);

/// Sum of squares of each dense tensor, parallel, in an order that no number of threads changes; on
/// a device in its own.
[[nodiscard]] std::vector<double> sums_of_squares(const std::vector<at::Tensor>& tensors);

}  // namespace argosy::optim
