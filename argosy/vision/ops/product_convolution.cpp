#include "argosy/vision/ops/product_convolution.h"

#include <array>

#include <ATen/Functions.h>
#include <torch/autograd.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/coming_memory.h"

namespace argosy::vision::ops {
namespace {

using torch::autograd::variable_list;
constexpr auto kImagesLast = at::MemoryFormat::ChannelsLast;

/// The taps of a kernel along one axis that meet the pixels `first`, `first + step`, … of its
/// input: tap + step·t, where the pixel number first + step·i is met by output base + i - t.
struct Phase {
  int64_t first = 0;
  int64_t step = 1;
  int64_t tap = 0;
  int64_t taps = 0;
  int64_t base = 0;
  int64_t pixels = 0;
};

Phase phase_of(int64_t first, int64_t kernel, int64_t stride, int64_t padding, int64_t pixels) {
  const int64_t tap = (first + padding) % stride;
  return {.first = first,
          .step = stride,
          .tap = tap,
          .taps = tap < kernel ? (kernel - tap + stride - 1) / stride : 0,
          .base = (first + padding - tap) / stride,
          .pixels = first < pixels ? (pixels - first + stride - 1) / stride : 0};
}

/// [N, H, W, C], without a copy.
at::Tensor pixels_last(const at::Tensor& images) {
  return images.permute({0, 2, 3, 1});
}

/// [N, H, W, C] with so many pixels of zeros more at the left, right, top and bottom, or fewer
/// pixels.
at::Tensor padded(const at::Tensor& pixels, const std::array<int64_t, 4>& more) {
  if (more == std::array<int64_t, 4>{}) {
    return pixels;
  }
  return at::constant_pad_nd(pixels, {0, 0, more[0], more[1], more[2], more[3]});
}

/// Row by row the windows of `kernel` pixels that begin every `stride` pixels of [N, H, W, C]:
/// [N · windows, kernel · C].
at::Tensor windows(const at::Tensor& pixels,
                   at::IntArrayRef count,
                   at::IntArrayRef kernel,
                   at::IntArrayRef stride) {
  const int64_t n = pixels.size(0), channels = pixels.size(3);
  return pixels
      .as_strided({n, count[0], count[1], kernel[0], kernel[1], channels},
                  {pixels.stride(0),
                   pixels.stride(1) * stride[0],
                   pixels.stride(2) * stride[1],
                   pixels.stride(1),
                   pixels.stride(2),
                   pixels.stride(3)})
      .reshape({n * count[0] * count[1], kernel[0] * kernel[1] * channels});
}

/// The windows of images [N, C, H, W] under a convolution to `out` pixels.
at::Tensor windows_of(const at::Tensor& images,
                      const at::Tensor& weight,
                      at::IntArrayRef out,
                      const ConvolutionGeometry& geometry) {
  const int64_t top = geometry.padding[0], left = geometry.padding[1];
  return windows(padded(pixels_last(images), {left, left, top, top}),
                 out,
                 weight.sizes().slice(2),
                 geometry.stride);
}

/// [N · H · W, C]
at::Tensor rows_of(const at::Tensor& images) {
  return pixels_last(images).reshape({-1, images.size(1)});
}

/// [O, kernel · C]
at::Tensor rows_of_weight(const at::Tensor& weight) {
  return pixels_last(weight).reshape({weight.size(0), -1});
}

/// Written into place: what a view made here may not be changed by the caller.
at::Tensor product(const at::Tensor& images,
                   const at::Tensor& weight,
                   const c10::optional<at::Tensor>& bias,
                   at::IntArrayRef out,
                   const ConvolutionGeometry& geometry) {
  at::Tensor y = at::empty({images.size(0), weight.size(0), out[0], out[1]},
                           images.options().memory_format(kImagesLast));
  at::Tensor rows = pixels_last(y).view({-1, weight.size(0)});
  const at::Tensor left = windows_of(images, weight, out, geometry);
  const at::Tensor right = rows_of_weight(weight).t();
  if (bias) {
    at::addmm_out(rows, *bias, left, right);
  } else {
    at::mm_out(rows, left, right);
  }
  return y;
}

at::Tensor weight_gradient(const at::Tensor& dy,
                           const at::Tensor& images,
                           const at::Tensor& weight,
                           const ConvolutionGeometry& geometry) {
  const at::Tensor rows =
      at::mm(rows_of(dy).t(), windows_of(images, weight, dy.sizes().slice(2), geometry));
  return rows.view({weight.size(0), weight.size(2), weight.size(3), weight.size(1)})
      .permute({0, 3, 1, 2});
}

/// The gradient of the pixels of two phases: a convolution of dy, not strided, by their taps.
at::Tensor phase_gradient(const at::Tensor& dy, const at::Tensor& weight, Phase v, Phase h) {
  const auto before = [](const Phase& phase) { return phase.taps - 1 - phase.base; };
  const auto after = [](const Phase& phase, int64_t out) {
    return phase.pixels + phase.base - out;
  };
  const at::Tensor around =
      padded(pixels_last(dy), {before(h), after(h, dy.size(3)), before(v), after(v, dy.size(2))});
  const at::Tensor left = windows(around, {v.pixels, h.pixels}, {v.taps, h.taps}, {1, 1});
  const at::Tensor taps = weight.slice(2, v.tap, weight.size(2), v.step)
                              .slice(3, h.tap, weight.size(3), h.step)
                              .permute({2, 3, 0, 1})
                              .flip({0, 1});
  return at::mm(left, taps.reshape({-1, weight.size(1)}))
      .view({dy.size(0), v.pixels, h.pixels, weight.size(1)});
}

at::Tensor image_gradient(const at::Tensor& dy,
                          const at::Tensor& images,
                          const at::Tensor& weight,
                          const ConvolutionGeometry& geometry) {
  const int64_t down = geometry.stride[0], across = geometry.stride[1];
  at::Tensor dx = at::empty_like(images, kImagesLast);
  for (int64_t i = 0; i < down * across; ++i) {
    const Phase v = phase_of(i / across, weight.size(2), down, geometry.padding[0], images.size(2));
    const Phase h =
        phase_of(i % across, weight.size(3), across, geometry.padding[1], images.size(3));
    if (v.pixels == 0 || h.pixels == 0) {
      continue;
    }
    const at::Tensor part = pixels_last(dx)
                                .slice(1, v.first, images.size(2), down)
                                .slice(2, h.first, images.size(3), across);
    if (v.taps == 0 || h.taps == 0) {
      part.zero_();
    } else {
      part.copy_(phase_gradient(dy, weight, v, h));
    }
  }
  return dx;
}

/// In words of IValue, for the way from forward to backward.
void keep(torch::autograd::AutogradContext& context,
          const ConvolutionGeometry& geometry,
          const ProductWays& ways) {
  context.saved_data["stride"] = geometry.stride;
  context.saved_data["padding"] = geometry.padding;
  context.saved_data["of_weight"] = ways.of_weight;
  context.saved_data["of_images"] = ways.of_images;
}

struct ProductConvolution : torch::autograd::Function<ProductConvolution> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& images,
                            const at::Tensor& weight,
                            const c10::optional<at::Tensor>& bias,
                            const ConvolutionGeometry& geometry,
                            const ProductWays& ways) {
    const engine::DirectUse use({weight, bias.value_or(at::Tensor())});
    context->save_for_backward({images, weight});
    context->saved_data["bias"] = bias.has_value();
    keep(*context, geometry, ways);
    if (ways.result) {
      return product(images, weight, bias, pixels_out(images, weight, geometry), geometry);
    }
    return at::convolution(
        images, weight, bias, geometry.stride, geometry.padding, {1, 1}, false, {0, 0}, 1);
  }

  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& grads) {
    const engine::Autocast off({.enabled = false});  // at::mm() would choose, mm_out() does not
    const variable_list saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const engine::DirectUse use({saved[1]});
    const ConvolutionGeometry geometry{.stride = data["stride"].toIntVector(),
                                       .padding = data["padding"].toIntVector()};
    const at::Tensor dy = grads[0].contiguous(kImagesLast);
    const bool again = at::GradMode::is_enabled();  // backward(create_graph)
    std::array<bool, 3> rest{context->needs_input_grad(0),
                             context->needs_input_grad(1),
                             data["bias"].toBool() && context->needs_input_grad(2)};
    variable_list gradients(5);
    if (rest[0] && !again && data["of_images"].toBool()) {
      gradients[0] = image_gradient(dy, saved[0], saved[1], geometry);
      rest[0] = false;
    }
    if (rest[1] && !again && data["of_weight"].toBool()) {
      gradients[1] = weight_gradient(dy, saved[0], saved[1], geometry);
      rest[1] = false;
    }
    if (rest[2] && !again) {
      gradients[2] = dy.sum({0, 2, 3});
      rest[2] = false;
    }
    add_rest(dy, saved, geometry, rest, gradients);
    return gradients;
  }

  /// Those that are still wanted, by libtorch's operator.
  static void add_rest(const at::Tensor& dy,
                       const variable_list& saved,
                       const ConvolutionGeometry& geometry,
                       const std::array<bool, 3>& wanted,
                       variable_list& gradients) {
    if (!wanted[0] && !wanted[1] && !wanted[2]) {
      return;
    }
    const std::vector<int64_t> of_bias =
        wanted[2] ? std::vector<int64_t>{saved[1].size(0)} : std::vector<int64_t>{};
    auto found = at::convolution_backward(dy,
                                          saved[0],
                                          saved[1],
                                          of_bias,
                                          geometry.stride,
                                          geometry.padding,
                                          {1, 1},
                                          false,
                                          {0, 0},
                                          1,
                                          wanted);
    const std::array<at::Tensor, 3> each{
        std::get<0>(found), std::get<1>(found), std::get<2>(found)};
    for (size_t i = 0; i < each.size(); ++i) {
      gradients[i] = wanted[i] ? each[i] : gradients[i];
    }
  }
};

}  // namespace

std::vector<int64_t> pixels_out(const at::Tensor& images,
                                const at::Tensor& weight,
                                const ConvolutionGeometry& geometry) {
  std::vector<int64_t> out;
  for (size_t axis = 0; axis < 2; ++axis) {
    const auto at = static_cast<int64_t>(axis) + 2;
    const int64_t free = images.size(at) + 2 * geometry.padding[axis] - weight.size(at);
    out.push_back(free < 0 ? 0 : free / geometry.stride[axis] + 1);
  }
  return out;
}

at::Tensor product_convolution(const at::Tensor& images,
                               const at::Tensor& weight,
                               const at::Tensor& bias,
                               const ConvolutionGeometry& geometry,
                               const ProductWays& ways) {
  return ProductConvolution::apply(
      images, weight, bias.defined() ? c10::make_optional(bias) : c10::nullopt, geometry, ways);
}

}  // namespace argosy::vision::ops
