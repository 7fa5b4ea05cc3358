#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "argosy/engine/synced_norm.h"
#include "argosy/vision/ops/norm_kernels.h"

// Internal to the room: the common parts of operators around a batch norm.
namespace argosy::vision::ops {

inline constexpr auto kLast = at::MemoryFormat::ChannelsLast;

/// True if the fused operators can do it: training, images of f32 or bf16 on the CPU in
/// channels_last, with a weight of f32 and a bias, and more than one value per channel. Otherwise
/// libtorch's operators run.
[[nodiscard]] bool can_fuse(const engine::NormState& norm, const at::Tensor& images);

/// Returns the elements of images as kernels see them; none of an undefined tensor.
[[nodiscard]] kernels::Pixels pixels_of(const at::Tensor& images);
[[nodiscard]] kernels::PixelsToWrite pixels_to_write(const at::Tensor& images);

/// Returns the shape of one of the images [N, C, H, W].
[[nodiscard]] kernels::ImageShape shape_of(const at::Tensor& images);

/// Returns the shape of the pixels of all images as one row.
[[nodiscard]] kernels::ImageShape row_of(const at::Tensor& images);

/// Calls body(first element, part) for the parts of a row, in parallel. So a few images also give
/// work to many threads.
void for_parts(const kernels::ImageShape& row,
               const std::function<void(int64_t, const kernels::ImageShape&)>& body);

/// Calls body(n) for each image, in parallel.
void for_images(int64_t images, const std::function<void(int64_t)>& body);

/// Returns two sums per channel: all of the first kind, then all of the second. `add` adds those of
/// a part of the row, or of image n. The order of summation does not depend on the number of
/// threads.
[[nodiscard]] std::vector<double> sums_over_parts(
    const kernels::ImageShape& row,
    const std::function<void(int64_t, const kernels::ImageShape&, double*, double*)>& add);
[[nodiscard]] std::vector<double> sums_over_images(
    int64_t images, int64_t channels, const std::function<void(int64_t, double*, double*)>& add);

/// Statistics of each channel, f32.
struct BatchStatistics {
  at::Tensor mean;
  at::Tensor inverse_std;        ///< 1 / √(biased variance + ε)
  double count = 0;              ///< values per channel
  engine::NormPeersPtr peers{};  ///< the processes that took them together
};

/// Returns the statistics of this batch and of the peers' batches, and moves the running ones as
/// torch::nn::BatchNorm2d does.
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

/// Passes from forward to backward how many values the statistics were taken of, and with which
/// peers.
void keep(torch::autograd::AutogradContext& context, const BatchStatistics& batch);

/// Computes the gradients from the sums of dy and of dy times the normalized x. Collective if there
/// are peers.
[[nodiscard]] NormGradient norm_gradient(const std::vector<double>& sums,
                                         const at::Tensor& weight,
                                         const at::Tensor& inverse_std,
                                         torch::autograd::AutogradContext& context);

/// Returns the number of values per channel in all images.
[[nodiscard]] double values_per_channel(const at::Tensor& images);

/// Returns the normalized images by libtorch's operators, in the weight's type, recorded by
/// autograd for a second derivative. Errors: UsageError if the statistics were taken with peers.
[[nodiscard]] at::Tensor recorded_norm(const at::Tensor& images,
                                       const at::Tensor& weight,
                                       const at::Tensor& bias,
                                       const at::Tensor& inverse_std,
                                       torch::autograd::AutogradContext& context);

/// Returns the gradients of `output` for images, weight and bias, recorded; undefined for an input
/// that needs none.
[[nodiscard]] std::vector<at::Tensor> recorded_gradients(const at::Tensor& output,
                                                         const at::Tensor& dy,
                                                         const std::vector<at::Tensor>& inputs);

/// Returns the gradients of relu(norm(images) + residual) for images, weight, bias and residual,
/// recorded, so that they can be derived again. `inputs`: images, weight, bias. `y`: the result
/// where there was a residual; undefined otherwise, and so is the residual's gradient.
[[nodiscard]] std::vector<at::Tensor> recorded_relu_gradients(
    const std::vector<at::Tensor>& inputs,
    const at::Tensor& inverse_std,
    const at::Tensor& y,
    const at::Tensor& dy,
    torch::autograd::AutogradContext& context);

}  // namespace argosy::vision::ops
