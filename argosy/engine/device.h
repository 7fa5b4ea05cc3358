#pragma once

#include <c10/core/Device.h>

namespace torch::nn {
class Module;
}

namespace argosy::engine {

/// Returns a module's device: that of the first parameter that it registers, else of its first
/// buffer, else the CPU. Cost: walks the whole module only if it has no parameters.
[[nodiscard]] c10::Device device_of(const torch::nn::Module& module);

}  // namespace argosy::engine
