#pragma once

#include <string>

/// What differs between libtorch 1.13 and 2.15 lies in this room and nowhere else. Public headers
/// stay free of it; a .cpp file that must branch includes <torch/version.h> and asks:
///
///     #if ARGOSY_TORCH_AT_LEAST(2, 1)
///
/// What differs so far, and how it is met:
///   - mixed precision is switched by a function for each device, from 2.4 on by one for all
///     (autocast.cpp);
///   - autograd nodes are held by shared_ptr, from 2.14 on by intrusive_ptr: `auto` and `decltype`
///     (grad_hook.cpp);
///   - the Python-free state of a module is read back through torch::jit::load, which all of them
///     share, and not through torch::pickle_load, which fails on 1.13 (serialize.cpp).
#define ARGOSY_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||         \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace argosy::engine {

/// The libtorch that this library was compiled against, e.g. "1.13.1".
[[nodiscard]] std::string torch_version();

}  // namespace argosy::engine
