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

/// Returns `tensor` as one flat range in the order of the dense tensor `like`: itself if the
/// strides agree, else a copy.
[[nodiscard]] at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& tensor);

/// Returns pieces of these tensors' elements for kernels::for_each_piece(). Tensors that are not on
/// the CPU give none.
[[nodiscard]] std::vector<kernels::Piece> cut(const std::vector<at::Tensor>& tensors);

/// Returns the sum of squares of each dense tensor, computed in parallel. The order of summation
/// does not depend on the number of threads; a device has its own order.
[[nodiscard]] std::vector<double> sums_of_squares(const std::vector<at::Tensor>& tensors);

}  // namespace argosy::optim
