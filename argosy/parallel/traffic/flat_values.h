#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

// Internal to the room: many tensors as one.
namespace argosy::parallel::traffic {

/// Returns the values of the tensors one after the other, each in row-major order, as a new flat
/// f32 or, if one of them is f64, f64 tensor on the device of the first.
[[nodiscard]] at::Tensor flat_copy(const std::vector<at::Tensor>& tensors);

/// Returns the parts of `flat`, which flat_copy() made, as views with the tensors' sizes.
[[nodiscard]] std::vector<at::Tensor> parts_like(const at::Tensor& flat,
                                                 const std::vector<at::Tensor>& tensors);

/// Copies the values of `flat` back into the tensors.
void copy_back(const at::Tensor& flat, const std::vector<at::Tensor>& tensors);

}  // namespace argosy::parallel::traffic
