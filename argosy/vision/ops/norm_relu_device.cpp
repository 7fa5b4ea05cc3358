#include "argosy/vision/ops/norm_relu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include <ATen/Functions.h>

#include "argosy/engine/device_program.h"
#include "argosy/vision/ops/norm_relu_source.h"

namespace argosy::vision::ops::device {
namespace {

using engine::DeviceProgram;
using Count = long long;  // NOLINT(google-runtime-int): the kernels' type

// As in the source.
constexpr int64_t kThreads = 256;
constexpr int64_t kColumns = 32;
constexpr unsigned kRows = 32;
constexpr int64_t kVectorBytes = 16;
/// Blocks fill the device some times over; a thread has so many pixels that what it needs for its
/// channels, and the sums that it leaves, are little beside them.
constexpr int64_t kMostBlocksOfSums = 1056;
constexpr int64_t kPixelsOfSums = 64;
constexpr int64_t kMostBlocks = 8192;
constexpr int64_t kPixels = 16;

/// One for each type, for a compiler needs a second for it. They stay for ever.
DeviceProgram& program(at::ScalarType type) {
  const auto make = [](at::ScalarType each) {
    return new DeviceProgram("norm_relu", norm_relu_source(each));  // NOLINT
  };
  static auto* const f32 = make(at::kFloat);
  static auto* const f16 = make(at::kHalf);
  static auto* const bf16 = make(at::kBFloat16);
  return type == at::kHalf ? *f16 : type == at::kBFloat16 ? *bf16 : *f32;
}

const char* name_of(at::ScalarType type) {
  return type == at::kHalf ? "f16" : type == at::kBFloat16 ? "bf16" : "f32";
}

/// Images as the kernels see them.
struct Shape {
  explicit Shape(const at::Tensor& images)
      : device(images.device()),
        type(images.scalar_type()),
        channels(static_cast<int>(images.size(1))),
        pixels(images.numel() / images.size(1)) {
    const int64_t vectors = channels / (kVectorBytes / static_cast<int64_t>(images.element_size()));
    columns = std::min(vectors, kColumns);
    rows = kThreads / columns;
    blocks_of_channels = (vectors + columns - 1) / columns;
  }

  [[nodiscard]] DeviceProgram::Grid grid(int64_t pixels_of_thread, int64_t most_blocks) const {
    const int64_t wanted = (pixels + rows * pixels_of_thread - 1) / (rows * pixels_of_thread);
    const int64_t blocks =
        std::clamp(wanted, int64_t{1}, std::max(int64_t{1}, most_blocks / blocks_of_channels));
    return {.blocks = static_cast<unsigned>(blocks),
            .threads = static_cast<unsigned>(columns),
            .blocks_y = static_cast<unsigned>(blocks_of_channels),
            .threads_y = static_cast<unsigned>(rows)};
  }
  [[nodiscard]] DeviceProgram::Grid grid_of_sums() const {
    return grid(kPixelsOfSums, kMostBlocksOfSums);
  }
  [[nodiscard]] DeviceProgram::Grid grid_of_pixels() const { return grid(kPixels, kMostBlocks); }
  [[nodiscard]] DeviceProgram::Grid grid_of_channels() const {
    return {.blocks = static_cast<unsigned>((channels + kColumns - 1) / kColumns),
            .threads = kColumns,
            .threads_y = kRows};
  }
  [[nodiscard]] at::Tensor floats(int64_t rows_of_channels) const {
    return at::empty({rows_of_channels, channels}, at::TensorOptions(device).dtype(at::kFloat));
  }
  template <typename... Args>
  void launch(const char* kernel, const DeviceProgram::Grid& on, Args... args) const {
    const std::string name = fmt::format("{}_{}", kernel, name_of(type));
    program(type).launch(device, name.c_str(), on, args...);
  }

  c10::Device device;
  at::ScalarType type;
  int channels;
  Count pixels;
  int64_t columns = 1;
  int64_t rows = 1;
  int64_t blocks_of_channels = 1;
};

void* data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr() : nullptr;
}

/// Returns the counter that the kernels move. Module::to(at::kFloat) moves counters too, and f32
/// have another pattern of bits: libtorch moves such a one here.
void* counter_of(const engine::NormState& norm) {
  if (norm.num_batches_tracked.scalar_type() == at::kLong) {
    return data(norm.num_batches_tracked);
  }
  norm.num_batches_tracked.add_(1);
  return nullptr;
}

Channels rows_of(const at::Tensor& all) {
  return {.mean = all[0], .inverse_std = all[1], .scale = all[2], .offset = all[3]};
}

bool is_float_on(const at::Tensor& tensor, c10::Device device) {
  return tensor.defined() && tensor.scalar_type() == at::kFloat && tensor.device() == device &&
         tensor.is_contiguous();
}

/// A momentum of none, the average of all batches, is not in the kernels.
bool can_track(const engine::NormState& norm, c10::Device device) {
  return !norm.options.track_running_stats() ||
         (norm.options.momentum().has_value() && is_float_on(norm.running_mean, device) &&
          is_float_on(norm.running_var, device) && norm.num_batches_tracked.defined() &&
          norm.num_batches_tracked.device() == device);
}

/// In a form that kernels can read.
at::Tensor readable(const at::Tensor& tensor) {
  const at::Tensor in_order = tensor.contiguous(kLast);
  return is_readable(in_order) ? in_order : in_order.clone(kLast);
}

}  // namespace

bool is_readable(const at::Tensor& tensor) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its number is what is asked
  const auto address = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  return tensor.is_contiguous(kLast) && address % kVectorBytes == 0;
}

bool can_fuse(const engine::NormState& norm, const at::Tensor& images) {
  const at::ScalarType type = images.scalar_type();
  if (!images.is_cuda() || !norm.training || norm.peers != nullptr || images.dim() != 4 ||
      !(type == at::kFloat || type == at::kHalf || type == at::kBFloat16)) {
    return false;
  }
  const auto width = kVectorBytes / static_cast<int64_t>(images.element_size());
  const c10::Device device = images.device();
  return images.size(1) % width == 0 && images.numel() > images.size(1) && is_readable(images) &&
         norm.options.affine() && is_float_on(norm.weight, device) &&
         is_float_on(norm.bias, device) && norm.weight.numel() == images.size(1) &&
         can_track(norm, device) && program(type).runs_on(device);
}

Channels take_statistics(const engine::NormState& norm, const at::Tensor& images) {
  const Shape shape(images);
  const DeviceProgram::Grid grid = shape.grid_of_sums();
  const at::Tensor partial = shape.floats(2 * int64_t{grid.blocks});
  shape.launch("moments", grid, images.data_ptr(), shape.pixels, shape.channels, data(partial));
  const at::Tensor out = shape.floats(4);
  const bool tracks = norm.options.track_running_stats();
  shape.launch("statistics",
               shape.grid_of_channels(),
               data(partial),
               static_cast<int>(grid.blocks),
               images.data_ptr(),
               shape.pixels,
               shape.channels,
               data(norm.weight),
               data(norm.bias),
               tracks ? data(norm.running_mean) : nullptr,
               tracks ? data(norm.running_var) : nullptr,
               tracks ? counter_of(norm) : nullptr,
               tracks ? *norm.options.momentum() : 0.0,
               norm.options.eps(),
               data(out));
  return rows_of(out);
}

at::Tensor norm_relu(const at::Tensor& images,
                     const Channels& channels,
                     const at::Tensor& residual) {
  const Shape shape(images);
  at::Tensor y = at::empty_like(images);
  shape.launch("norm_relu",
               shape.grid_of_pixels(),
               images.data_ptr(),
               data(residual),
               shape.pixels,
               shape.channels,
               channels.mean.data_ptr<float>(),
               data(y));
  return y;
}

Gradients gradients(const at::Tensor& dy,
                    const at::Tensor& images,
                    const at::Tensor& y,
                    const Channels& channels) {
  const Shape shape(images);
  const at::Tensor passed_on = readable(dy);
  const float* const of_channels = channels.mean.data_ptr<float>();
  const DeviceProgram::Grid grid = shape.grid_of_sums();
  const at::Tensor partial = shape.floats(2 * int64_t{grid.blocks});
  Gradients out{.images = at::empty_like(images)};
  if (y.defined()) {
    out.residual = at::empty_like(images);
  }
  shape.launch("gradient_sums",
               grid,
               passed_on.data_ptr(),
               images.data_ptr(),
               data(y),
               shape.pixels,
               shape.channels,
               of_channels,
               data(out.residual),
               data(partial));
  const at::Tensor of_gradient = shape.floats(4);
  shape.launch("gradient_channels",
               shape.grid_of_channels(),
               data(partial),
               static_cast<int>(grid.blocks),
               shape.pixels,
               shape.channels,
               of_channels,
               data(of_gradient));
  shape.launch("image_gradient",
               shape.grid_of_pixels(),
               y.defined() ? data(out.residual) : passed_on.data_ptr(),
               images.data_ptr(),
               shape.pixels,
               shape.channels,
               of_channels,
               of_gradient.data_ptr<float>(),
               static_cast<int>(y.defined()),
               data(out.images));
  out.weight = of_gradient[0];
  out.bias = of_gradient[1];
  return out;
}

}  // namespace argosy::vision::ops::device
