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

/// Which memory format a model trains in, and why. Decided once.
struct FormatChoice {
  engine::MemoryFormat format = engine::MemoryFormat::kAsIs;
  bool open = false;  ///< kAuto: decided at the first forward that will average gradients
  std::string reason{};
};

/// What can be said before the first forward.
[[nodiscard]] FormatChoice choose_by_layers(const torch::nn::Module& module,
                                            engine::MemoryFormat wanted);

/// The module's forward on this step's inputs in a format, and the tensors of its output.
using Forward = std::function<std::vector<at::Tensor>(engine::MemoryFormat)>;

/// Runs two forwards in evaluation mode and without gradients, as the model is and in
/// channels_last: code that reads memory in a certain order (`view({n, -1})` of an image, raw
/// pointers) fails or gives something else in the second. Leaves the module, its buffers and
/// libtorch's random numbers as they were. Empty when channels_last may be taken, else what speaks
/// against it.
[[nodiscard]] std::string objection_to_channels_last(torch::nn::Module& module,
                                                     const Forward& forward);

}  // namespace argosy::parallel::ddp
