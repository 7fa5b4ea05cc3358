#pragma once

#include <ATen/core/Tensor.h>

#include "argosy/rpc/codec.h"

namespace argosy::rpc {

/// Tensors travel as values do, their elements as Memory beside them:
///
///     rpc::serve("norm", [](const at::Tensor& tensor) { return tensor.norm().item<double>(); });
///     double norm = rpc::rpc_sync<double>("worker1", "norm", weights);
///
/// Those of a device, and those that are not contiguous, are copied first. What arrives is a
/// contiguous tensor of the CPU in the memory of the message, without requires_grad. Undefined
/// tensors stay so.
template <>
struct Codec<at::Tensor> {
  static void put(Writer& writer, const at::Tensor& tensor);
  /// Errors: UsageError when the bytes are not those of such a tensor.
  static at::Tensor take(Reader& reader);
};

}  // namespace argosy::rpc
