#pragma once

#include <cstdint>
#include <string>

#include <c10/core/Device.h>

#include "argosy/transport/reduce.h"

// Internal to the room.
namespace argosy::comm {

/// Compiles and loads the kernel for sums of this tree, which takes some tenths of a second the
/// first time. Returns false where there is no kernel: for operations other than sums and averages
/// of floats, for many terms, and on devices that run no DeviceProgram. The terms' data is not
/// read.
[[nodiscard]] bool prepare_sum(c10::Device device,
                               const transport::Terms& terms,
                               transport::DType dtype,
                               transport::ReduceOp op);
/// transport::reduce() by that kernel in the device's current stream: the same bits, but for those
/// of a NaN. It reads each term once and writes each sum once. Returns false where there is no
/// kernel.
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
