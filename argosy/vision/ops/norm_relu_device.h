#pragma once

#include <ATen/core/Tensor.h>

#include "argosy/engine/synced_norm.h"

// Internal to the room: norm_relu.h on CUDA. Each tensor passes through the device's memory as
// often as it has to: images twice forward, images and gradients twice backward.
namespace argosy::vision::ops::device {

/// True if there are kernels for it: training, f32, f16 or bf16 on CUDA in channels_last, with f32
/// weights and as many channels as vectors of 16 bytes have, more than one value for each channel,
/// a momentum, and no peers.
[[nodiscard]] bool can_fuse(const engine::NormState& norm, const at::Tensor& images);

/// Returns relu(norm(images) + residual), where can_fuse(). `residual`: may be undefined, otherwise
/// of the images' shape, type and format.
[[nodiscard]] at::Tensor norm_relu(const engine::NormState& norm,
                                   const at::Tensor& images,
                                   const at::Tensor& residual);

}  // namespace argosy::vision::ops::device
