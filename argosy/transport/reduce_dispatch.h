#pragma once

#include <cstdint>

#include "argosy/transport/types.h"

// Internal to the room: one set of kernels per instruction set, see reduce_kernels.h.
namespace argosy::transport {

/// Computes to[i] = op over sources[0..n-1][i], in order.
using Kernel = void (*)(const void* const* sources, int n, void* to, int64_t count);

namespace baseline {
[[nodiscard]] Kernel select(DType dtype, ReduceOp op);
}
namespace avx2 {
[[nodiscard]] Kernel select(DType dtype, ReduceOp op);
}
namespace avx512 {
[[nodiscard]] Kernel select(DType dtype, ReduceOp op);
}

}  // namespace argosy::transport
