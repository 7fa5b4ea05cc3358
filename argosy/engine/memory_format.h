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

/// In which order the elements of 4-d tensors (images, activations, weights of convolutions) lie.
enum class MemoryFormat {
  kAsIs,          ///< whatever the program made
  kAuto,          ///< channels_last where that is faster and changes nothing else
  kContiguous,    ///< N, C, H, W: libtorch's default
  kChannelsLast,  ///< N, H, W, C: what convolutions on the CPU run faster in
};

/// "as_is", "auto", "contiguous", "channels_last".
[[nodiscard]] std::string_view to_string(MemoryFormat format);
/// The format of that name; nullopt when there is none.
[[nodiscard]] std::optional<MemoryFormat> memory_format(std::string_view name);

/// `tensor` in kContiguous or kChannelsLast, as a copy where it is not: 4-d and of a floating type.
/// Itself otherwise. Recorded by autograd.
[[nodiscard]] at::Tensor in_format(const at::Tensor& tensor, MemoryFormat format);

/// What else uses the memory of a dense tensor: nothing, or other tensors too, which would be read
/// in the wrong order if it were laid out anew.
[[nodiscard]] bool has_own_memory(const at::Tensor& tensor);

/// Puts every 4-d parameter and buffer into kContiguous or kChannelsLast where it lies: handles and
/// addresses stay valid, strides change. Those whose memory other tensors use too are left as they
/// are, gradients too.
void lay_out(const torch::nn::Module& module, MemoryFormat format);

/// The name of a 4-d parameter or buffer that does not lie so; empty when all do. lay_out() leaves
/// those that share their memory with other tensors.
[[nodiscard]] std::string not_laid_out(const torch::nn::Module& module, MemoryFormat format);

/// The strides of a module's 4-d parameters and buffers, to return to.
class Layout {
 public:
  explicit Layout(const torch::nn::Module& module);
  /// Puts every tensor back in its strides, with the values that it has now.
  void restore() const;

 private:
  std::vector<std::pair<at::Tensor, std::vector<int64_t>>> tensors_{};
};

/// Whether channels_last can be faster for this module, by its layers alone, and why or why not.
struct ChannelsLastAdvice {
  bool worth_trying = false;
  std::string reason{};
};

/// The rule: a convolution (Conv2d or ConvTranspose2d) in f32 or bf16 on the CPU, for which
/// libtorch calls oneDNN; every 4-d parameter row-major and in memory of its own.
/// docs/guides/memory_format.md has the measurements behind it.
[[nodiscard]] ChannelsLastAdvice advise_channels_last(const torch::nn::Module& module);

}  // namespace argosy::engine
