#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "argosy/engine/synced_norm.h"
#include "argosy/vision/ops/norm_kernels.h"

// Internal to the room: what operators around a batch norm have in common.
namespace argosy::vision::ops {

inline constexpr auto kLast = at::MemoryFormat::ChannelsLast;

/// Training, f32 on the CPU in channels_last, with a weight and a bias, and more than one value for
/// each channel: else operators are left to libtorch.
[[nodiscard]] bool can_fuse(const engine::NormState& norm, const at::Tensor& images);

/// Of [N, C, H, W].
[[nodiscard]] kernels::Image shape_of(const at::Tensor& images);

/// The pixels of all images as one row.
[[nodiscard]] kernels::Image row_of(const at::Tensor& images);

/// body(first element, part) for parts of a row, in parallel: few images have work for many threads
/// too.
void for_parts(const kernels::Image& row,
               const std::function<void(int64_t, const kernels::Image&)>& body);

/// body(n) for each image, in parallel.
void for_images(int64_t images, const std::function<void(int64_t)>& body);

/// Two numbers for each channel, to which `add` adds those of a part of a row or of image n: first
/// all of the one, then of the other. The same order of sums with any number of threads.
[[nodiscard]] std::vector<double> sums_over_parts(
    const kernels::Image& row,
    const std::function<void(int64_t, const kernels::Image&, double*, double*)>& add);
[[nodiscard]] std::vector<double> sums_over_images(
    int64_t images, int64_t channels, const std::function<void(int64_t, double*, double*)>& add);

/// Of each channel, f32.
struct BatchStatistics {
  at::Tensor mean;
  at::Tensor inverse_std;        ///< 1 / √(biased variance + ε)
  double count = 0;              ///< values of one channel
  engine::NormPeersPtr peers{};  ///< with whom they were taken
};

/// Those of this batch, and of the peers'; moves the running ones as torch::nn::BatchNorm2d does.
[[nodiscard]] BatchStatistics take_statistics(const engine::NormState& norm,
                                              const at::Tensor& images);

/// Gradients of weight and bias, and dx = slope·(x - mean) + level + scale·dy, for each channel.
struct NormGradient {
  at::Tensor weight;
  at::Tensor bias;
  std::vector<float> scale;
  std::vector<float> slope;
  std::vector<float> level;
};

/// How many values the statistics were taken of, and with whom, from forward to backward.
void keep(torch::autograd::AutogradContext& context, const BatchStatistics& batch);

/// From the sums of dy and of dy times the normalized x. Collective where there are peers.
[[nodiscard]] NormGradient norm_gradient(const std::vector<double>& sums,
                                         const at::Tensor& weight,
                                         const at::Tensor& inverse_std,
                                         torch::autograd::AutogradContext& context);

/// Values of one channel in all images.
[[nodiscard]] double values_per_channel(const at::Tensor& images);

/// The normalized images by libtorch's operators, recorded: for a second derivative.
/// Errors: UsageError where the statistics were taken with peers.
[[nodiscard]] at::Tensor recorded_norm(const at::Tensor& images,
                                       const at::Tensor& weight,
                                       const at::Tensor& bias,
                                       const at::Tensor& inverse_std,
                                       torch::autograd::AutogradContext& context);

/// Gradients of `output` for images, weight and bias, recorded; undefined for what needs none.
[[nodiscard]] std::vector<at::Tensor> recorded_gradients(const at::Tensor& output,
                                                         const at::Tensor& dy,
                                                         const std::vector<at::Tensor>& inputs);

}  // namespace argosy::vision::ops
