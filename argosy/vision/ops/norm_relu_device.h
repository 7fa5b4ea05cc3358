#pragma once

#include <ATen/core/Tensor.h>

#include "argosy/engine/synced_norm.h"
#include "argosy/vision/ops/batch_norm.h"

// Internal to the room: norm_relu.h on CUDA. Each tensor passes through the device's memory as
// often as it has to: images twice forward, images and gradients twice backward.
namespace argosy::vision::ops::device {

/// True if there are kernels for it: training, f32, f16 or bf16 on CUDA in channels_last, with f32
/// weights and as many channels as vectors of 16 bytes have, more than one value for each channel,
/// and no peers.
[[nodiscard]] bool can_fuse(const engine::NormState& norm, const at::Tensor& images);

/// Returns the channels' values in one tensor [4, C], and moves the running statistics as
/// torch::nn::BatchNorm2d does. What else takes Channels takes only such.
[[nodiscard]] Channels take_statistics(const engine::NormState& norm, const at::Tensor& images);

/// Returns relu(images·scale + offset + residual). `residual`: may be undefined, otherwise of the
/// images' shape, type and format.
[[nodiscard]] at::Tensor norm_relu(const at::Tensor& images,
                                   const Channels& channels,
                                   const at::Tensor& residual);

/// Whether kernels can read it: in channels_last, and whole vectors.
[[nodiscard]] bool is_readable(const at::Tensor& tensor);

struct Gradients {
  at::Tensor images{};
  at::Tensor weight{};
  at::Tensor bias{};
  at::Tensor residual{};  ///< undefined without `y`
};
/// `y`: what norm_relu() gave, where there was a residual; undefined otherwise. `dy`: of
/// the images' type.
[[nodiscard]] Gradients gradients(const at::Tensor& dy,
                                  const at::Tensor& images,
                                  const at::Tensor& y,
                                  const Channels& channels);

}  // namespace argosy::vision::ops::device
