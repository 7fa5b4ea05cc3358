#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/memory_format.h"

namespace torch::nn {
class Module;
}

namespace argosy::parallel::ddp {

/// The memory format in which a model trains, and the reason. It is decided once.
struct FormatChoice {
  engine::MemoryFormat format = engine::MemoryFormat::kAsIs;
  bool open = false;  ///< kAuto: decided at the first forward that will average gradients
  std::string reason{};
};

/// Returns what is known before the first forward.
[[nodiscard]] FormatChoice choose_by_layers(const torch::nn::Module& module,
                                            engine::MemoryFormat wanted);

/// Runs the module's forward on this step's inputs in a format, and returns the tensors of its
/// output.
using Forward = std::function<std::vector<at::Tensor>(engine::MemoryFormat)>;

/// Returns the reason against channels_last, or "" if the model can use it. It runs two forwards in
/// evaluation mode and without gradients, one in the model's format and one in channels_last. Code
/// that reads memory in a certain order (`view({n, -1})` of an image, raw pointers) fails or gives
/// another result in the second. The module, its buffers and libtorch's random numbers stay as they
/// were.
[[nodiscard]] std::string objection_to_channels_last(torch::nn::Module& module,
                                                     const Forward& forward);

}  // namespace argosy::parallel::ddp
