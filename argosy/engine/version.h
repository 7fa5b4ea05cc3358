#pragma once

#include <string>

/// This room alone handles the differences between libtorch 1.13 and 2.15. Public headers are free
/// of them; a .cpp file that must branch includes <torch/version.h> and asks:
///
///     #if ARGOSY_TORCH_AT_LEAST(2, 1)
///
/// The differences so far:
///   - one function per device switches mixed precision; from 2.4 on, one function for all devices
///     (autocast.cpp);
///   - one operator computes attention with its gradient from 2.0 on (attention.cpp);
///   - shared_ptr holds autograd nodes; from 2.14 on, intrusive_ptr does: use `auto` and `decltype`
///     (grad_hook.cpp, graph_node.cpp);
///   - torch::pickle_load fails on 1.13, so the Python-free state of a module is read by
///     torch::jit::load, which all versions have (serialize.cpp).
#define ARGOSY_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||         \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace argosy::engine {

/// Returns the version of libtorch that this library was compiled against, e.g. "1.13.1".
[[nodiscard]] std::string torch_version();

}  // namespace argosy::engine
