#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/transport/types.h"

// Internal to the room.
namespace argosy::comm {

/// transport::reduce() by libtorch's operators: the same bits, on the tensors' device and in its
/// current stream. Tensors of bool are given as bytes. Returns the sum in the type in which it is
/// added: f32 for 16 bits, i64 for averages of integers.
[[nodiscard]] at::Tensor reduce_tensors(const std::vector<at::Tensor>& terms,
                                        const uint8_t* merges,
                                        int64_t divisor,
                                        transport::DType dtype,
                                        transport::ReduceOp op);

}  // namespace argosy::comm
