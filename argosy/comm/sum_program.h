#pragma once

#include <cstdint>
#include <string>

#include <c10/core/Device.h>

#include "argosy/transport/reduce.h"

// Internal to the room.
namespace argosy::comm {

/// transport::reduce() by one kernel in the device's current stream: the same bits. It reads each
/// term once and writes each sum once. Returns false where there is no such kernel: for other
/// operations than sums and averages of floats, many terms, and devices that run no DeviceProgram.
/// A kernel is compiled for each tree, which takes some tenths of a second the first time.
[[nodiscard]] bool sum_by_kernel(c10::Device device,
                                 const transport::Terms& terms,
                                 void* destination,
                                 int64_t count,
                                 transport::DType dtype,
                                 transport::ReduceOp op);

/// The source of such a kernel for one tree, which is written out in it:
///
///     extern "C" __global__ void sum(Terms terms, T* to, long long vectors, long long count,
///                                    Wide divisor);
///
/// Terms holds the addresses. The first `vectors` times 16 bytes are read as vectors.
[[nodiscard]] std::string source_of_sum(const transport::Terms& tree,
                                        transport::DType dtype,
                                        bool average);

}  // namespace argosy::comm
