#include "argosy/vision/ops/norm_relu_device.h"

#include <algorithm>

#include <ATen/Functions.h>
#include <torch/autograd.h>

#include "argosy/engine/coming_memory.h"
#include "argosy/engine/device_program.h"
#include "argosy/vision/ops/batch_norm.h"
#include "argosy/vision/ops/norm_relu_source.h"

namespace argosy::vision::ops::device {
namespace {

using engine::DeviceProgram;
using torch::autograd::variable_list;
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
    program(type).launch(device, kernel, on, args...);
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

/// In a form that kernels can read: whole vectors of channels. What begins elsewhere is copied, and
/// not given to other operators, so that no bit depends on an address.
at::Tensor readable(const at::Tensor& tensor) {
  const at::Tensor in_order = tensor.contiguous(kLast);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its number is what is asked
  const auto address = reinterpret_cast<uintptr_t>(in_order.data_ptr());
  return address % kVectorBytes == 0 ? in_order : in_order.clone(kLast);
}

/// Returns [4, C]: mean, 1 / √(biased variance + ε), scale and offset, and moves the running
/// statistics as torch::nn::BatchNorm2d does.
at::Tensor take_statistics(const engine::NormState& norm, const at::Tensor& images) {
  const Shape shape(images);
  const DeviceProgram::Grid grid = shape.grid_of_sums();
  const at::Tensor partial = shape.floats(2 * int64_t{grid.blocks});
  shape.launch("moments", grid, images.data_ptr(), shape.pixels, shape.channels, data(partial));
  at::Tensor of_channels = shape.floats(4);
  const engine::DirectUse use({norm.weight, norm.bias});
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
               data(of_channels));
  return of_channels;
}

at::Tensor forward_of(const at::Tensor& images,
                      const at::Tensor& residual,
                      const at::Tensor& of_channels) {
  const Shape shape(images);
  at::Tensor y = at::empty_like(images);
  shape.launch("norm_relu",
               shape.grid_of_pixels(),
               images.data_ptr(),
               data(residual),
               shape.pixels,
               shape.channels,
               data(of_channels),
               data(y));
  return y;
}

/// Of images, weight, bias and residual. `y`: the result where there was a residual; undefined
/// otherwise, and so is the residual's gradient.
variable_list gradients_of(const at::Tensor& dy,
                           const at::Tensor& images,
                           const at::Tensor& y,
                           const at::Tensor& of_channels) {
  const Shape shape(images);
  const at::Tensor given = readable(dy);
  const at::Tensor passed = y.defined() ? at::empty_like(images) : at::Tensor();
  const DeviceProgram::Grid grid = shape.grid_of_sums();
  const at::Tensor partial = shape.floats(2 * int64_t{grid.blocks});
  shape.launch("gradient_sums",
               grid,
               given.data_ptr(),
               images.data_ptr(),
               data(y),
               shape.pixels,
               shape.channels,
               data(of_channels),
               data(passed),
               data(partial));
  const at::Tensor of_gradient = shape.floats(4);
  shape.launch("gradient_channels",
               shape.grid_of_channels(),
               data(partial),
               static_cast<int>(grid.blocks),
               shape.pixels,
               shape.channels,
               data(of_channels),
               data(of_gradient));
  const at::Tensor dx = at::empty_like(images);
  shape.launch("image_gradient",
               shape.grid_of_pixels(),
               data(y.defined() ? passed : given),
               images.data_ptr(),
               shape.pixels,
               shape.channels,
               data(of_channels),
               data(of_gradient),
               static_cast<int>(y.defined()),
               data(dx));
  return {dx, of_gradient[0], of_gradient[1], passed};
}

struct NormRelu : torch::autograd::Function<NormRelu> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& images,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            const c10::optional<at::Tensor>& residual,
                            const at::Tensor& of_channels) {
    at::Tensor y = forward_of(images, residual.value_or(at::Tensor()), of_channels);
    // Without a residual x tells where relu let something through.
    context->save_for_backward({images, weight, bias, of_channels, residual ? y : at::Tensor()});
    return y;
  }
  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    variable_list out =
        at::GradMode::is_enabled()  // backward(create_graph)
            ? recorded_relu_gradients(
                  {saved[0], saved[1], saved[2]}, saved[3][1], saved[4], grads[0], *context)
            : gradients_of(grads[0], saved[0], saved[4], saved[3]);
    out.emplace_back();
    return out;
  }
};

}  // namespace

bool can_fuse(const engine::NormState& norm, const at::Tensor& images) {
  const at::ScalarType type = images.scalar_type();
  if (!images.is_cuda() || !norm.training || norm.peers != nullptr || images.dim() != 4 ||
      !(type == at::kFloat || type == at::kHalf || type == at::kBFloat16)) {
    return false;
  }
  const auto width = kVectorBytes / static_cast<int64_t>(images.element_size());
  const c10::Device device = images.device();
  return images.size(1) % width == 0 && images.numel() > images.size(1) &&
         images.is_contiguous(kLast) && norm.options.affine() && is_float_on(norm.weight, device) &&
         is_float_on(norm.bias, device) && norm.weight.numel() == images.size(1) &&
         can_track(norm, device) && program(type).runs_on(device);
}

at::Tensor norm_relu(const engine::NormState& norm,
                     const at::Tensor& images,
                     const at::Tensor& residual) {
  const at::Tensor x = readable(images);
  at::Tensor of_channels;
  {
    const at::NoGradGuard no_grad;
    of_channels = take_statistics(norm, x);
  }
  const auto added = residual.defined() ? c10::optional<at::Tensor>(readable(residual))
                                        : c10::optional<at::Tensor>();
  return NormRelu::apply(x, norm.weight, norm.bias, added, of_channels);
}

}  // namespace argosy::vision::ops::device
