#include "argosy/vision/ops/convolution.h"

#include <algorithm>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <c10/util/accumulate.h>
#include <torch/version.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/cpu.h"
#include "argosy/engine/version.h"
#include "argosy/vision/ops/product_convolution.h"

namespace argosy::vision::ops {
namespace {

using Options = torch::nn::detail::ConvNdOptions<2>;

constexpr int64_t kFew = 16;
constexpr int64_t kSmall = 49;
/// Multiplications for each tap, for the sake of product_convolution() in bf16.
constexpr int64_t kLeastProduct = 1 << 15;
/// The most that windows may take, in images: that of the largest kernel that was measured.
constexpr int64_t kMostWindows = 9;
/// With oneDNN 3 the f32 gradient of the images is slow there too.
constexpr bool kNewConvolutions = ARGOSY_TORCH_AT_LEAST(2, 1);

/// As benchmarks/results/2026-11-28-1617-convolution.md found it.
ProductWays ways_for(const at::Tensor& images,
                     const at::Tensor& weight,
                     const ConvolutionGeometry& geometry,
                     at::ScalarType type) {
  const int64_t pixels = c10::multiply_integers(pixels_out(images, weight, geometry));
  const int64_t pixels_in = images.size(2) * images.size(3);
  const int64_t taps = weight.size(2) * weight.size(3);
  const int64_t stride = c10::multiply_integers(geometry.stride);
  const int64_t least = images.size(0) * std::min(pixels, pixels_in / stride) * weight.size(0) *
                        weight.size(1);  // multiplications of a product
  const bool fits = least >= kLeastProduct && pixels * taps <= kMostWindows * pixels_in;
  const bool few = fits && pixels <= kFew;
  const bool small = fits && pixels <= kSmall;
  const bool point = taps == 1;  // its windows are the pixels
  const bool cheap = few || (small && point);
  if (type == at::kBFloat16) {
    return {.result = cheap, .of_weight = small, .of_images = cheap || (small && stride > 1)};
  }
  return {.result = cheap, .of_weight = cheap, .of_images = few && kNewConvolutions};
}

bool has_fast_products(at::ScalarType type) {
  return type == at::kBFloat16 ? engine::fast_products().bf16 : engine::fast_products().f32;
}

/// The type that the convolution computes in; undefined where libtorch's operator has to.
at::ScalarType type_for(const at::Tensor& images, const at::Tensor& weight) {
  constexpr auto kNone = at::ScalarType::Undefined;
  const at::ScalarType given = images.scalar_type();
  if (weight.scalar_type() != at::kFloat || !(given == at::kFloat || given == at::kBFloat16)) {
    return kNone;
  }
  if (engine::is_autocast_enabled(at::kCPU)) {
    return engine::autocast_dtype(at::kCPU) == at::kBFloat16 ? at::kBFloat16 : kNone;
  }
  return given == at::kFloat ? at::kFloat : kNone;
}

bool is_plain(const Options& options, const at::Tensor& images) {
  return images.device().is_cpu() && images.dim() == 4 && images.size(1) == options.in_channels() &&
         images.numel() > 0 && images.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         options.groups() == 1 && c10::multiply_integers(*options.dilation()) == 1 &&
         options.padding().index() == 0 && options.padding_mode().index() == 0;
}

ConvolutionGeometry geometry_of(const Options& options) {
  const auto& padding = get<0>(options.padding());
  return {.stride = {options.stride()->begin(), options.stride()->end()},
          .padding = {padding->begin(), padding->end()}};
}

/// As libtorch's operators do under autocast, from its cache.
at::Tensor cast(const at::Tensor& x, at::ScalarType type) {
  return type == at::kBFloat16 && x.defined() ? at::autocast::cached_cast(type, x, at::kCPU) : x;
}

}  // namespace

at::Tensor convolution(torch::nn::Conv2d& conv, const at::Tensor& images) {
  const at::ScalarType type = type_for(images, conv->weight);
  if (type == at::ScalarType::Undefined || !conv->is_training() ||
      !is_plain(conv->options, images)) {
    return conv(images);
  }
  const ConvolutionGeometry geometry = geometry_of(conv->options);
  const ProductWays ways = ways_for(images, conv->weight, geometry, type);
  if (!(ways.result || ways.of_weight || ways.of_images) || !has_fast_products(type)) {
    return conv(images);
  }
  return product_convolution(
      cast(images, type), cast(conv->weight, type), cast(conv->bias, type), geometry, ways);
}

}  // namespace argosy::vision::ops
