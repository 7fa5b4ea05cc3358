#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace argosy::test {

/// A device beside the CPU, for machines that have none: "xpu:0" to "xpu:2", a type of device that
/// libtorch knows and has no kernels for; second_device.cpp brings them.
///
///     at::Device there = test::second_device(1);
///     net->to(there);                       // and forward(), backward(), as on a GPU
///
/// Its kernels are the CPU's, on its memory: results equal the CPU's to the bit. As on a GPU, and
/// unlike the CPU: data_ptr() is no address that a program can read or write (the process dies by
/// SIGSEGV), new memory is never zero (0xff: NaN), tensors of two devices do not mix in one
/// operator but for scalars, there is a current device and a current stream for each thread, and
/// backward runs in a thread of each device's own. Unlike a GPU it is never behind: an operator has
/// ended when it returns. Random numbers come from the CPU's generator.
inline constexpr int kSecondDevices = 3;

/// False where this libtorch does not let us have one: see tests/support/CMakeLists.txt.
[[nodiscard]] bool has_second_device();
[[nodiscard]] c10::Device second_device(int index = 0);

/// The stream in which memory of the device was last written by a copy, of this process.
[[nodiscard]] c10::Stream stream_of_last_copy_to(c10::Device device);
/// A stream beside the default one, for c10::StreamGuard.
[[nodiscard]] c10::Stream side_stream(c10::Device device);

}  // namespace argosy::test
