#pragma once

#include <cstdint>

#include "argosy/transport/reduce.h"
#include "argosy/transport/types.h"

// Internal to the room: one set of kernels per instruction set, see reduce_kernels.h.
namespace argosy::transport {

/// Computes to[i] of the terms' elements i.
using Kernel = void (*)(const Terms& terms, void* to, int64_t count);

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
