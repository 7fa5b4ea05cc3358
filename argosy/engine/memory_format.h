#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace argosy::engine {

/// The order in memory of the elements of 4-d tensors (images, activations, convolution weights).
enum class MemoryFormat {
  kAsIs,          ///< as the program made them
  kAuto,          ///< channels_last if that is faster and changes nothing else
  kContiguous,    ///< N, C, H, W: libtorch's default
  kChannelsLast,  ///< N, H, W, C: faster convolutions on CPUs and CUDA
};

/// "as_is", "auto", "contiguous", "channels_last".
[[nodiscard]] std::string_view to_string(MemoryFormat format);
/// Returns the format of that name, or nullopt if there is none.
[[nodiscard]] std::optional<MemoryFormat> memory_format(std::string_view name);

/// Returns `tensor` in kContiguous or kChannelsLast if it is 4-d and of a floating type: a copy
/// unless it already has that format. Otherwise returns `tensor` itself. Autograd records it.
[[nodiscard]] at::Tensor in_format(const at::Tensor& tensor, MemoryFormat format);

/// True if no other tensor uses the memory of a dense tensor. Other tensors would be read in the
/// wrong order if it were laid out anew.
[[nodiscard]] bool has_own_memory(const at::Tensor& tensor);

/// Puts every 4-d parameter and buffer into kContiguous or kChannelsLast, in place: handles and
/// addresses stay valid, strides change. Gradients, and tensors whose memory other tensors also
/// use, stay as they are.
void lay_out(const torch::nn::Module& module, MemoryFormat format);

/// Returns the name of a 4-d parameter or buffer in another format, or "" if there is none.
/// lay_out() leaves those that share their memory with other tensors.
[[nodiscard]] std::string not_laid_out(const torch::nn::Module& module, MemoryFormat format);

/// The strides of a module's 4-d parameters and buffers, kept so that they can be restored.
class Layout {
 public:
  explicit Layout(const torch::nn::Module& module);
  /// Restores every tensor's strides and keeps its current values.
  void restore() const;

 private:
  std::vector<std::pair<at::Tensor, std::vector<int64_t>>> tensors_{};
};

/// Advice whether channels_last can be faster for a module, judged by its layers alone, with the
/// reason.
struct ChannelsLastAdvice {
  bool worth_trying = false;
  std::string reason{};
};

/// Advises channels_last if the module has a convolution (Conv2d or ConvTranspose2d) for which
/// libtorch calls oneDNN (f32 or bf16 on the CPU) or cuDNN (f16, bf16, or f32 as TF32, on CUDA),
/// and every 4-d parameter is row-major and has its own memory. docs/guides/memory_format.md has
/// the measurements behind this rule.
[[nodiscard]] ChannelsLastAdvice advise_channels_last(const torch::nn::Module& module);

}  // namespace argosy::engine
