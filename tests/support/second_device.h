#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace argosy::test {

/// A device beside the CPU, for machines that have none: "second:0" to "second:7", with libtorch
/// 1.13 "xpu:0" to "xpu:7"; second_device.cpp brings its kernels.
///
///     at::Device there = test::second_device(1);
///     net->to(there);                       // and forward(), backward(), as on a GPU
///
/// Its kernels are the CPU's, on its memory: results equal the CPU's to the bit. As on a GPU, and
/// unlike the CPU: data_ptr() is no address that a program can read or write (the process dies by
/// SIGSEGV), new memory is never zero (0xff: NaN), tensors of two devices do not mix in one
/// operator but for scalars, there is a current device and a current stream for each thread, and
/// backward runs in a thread of each device's own. Work runs in streams, late (LateQueue); work
/// that another stream's should have waited for is an error of the next synchronization
/// (StreamOrder). tensor.pin_memory(device) makes memory of the host from which non-blocking copies
/// are late too. Random numbers come from the CPU's generator.
inline constexpr int kSecondDevices = 8;

/// The first call, or the first tensor there, makes it the program's accelerator in CUDA's place:
/// see second_device_libtorch.h.
[[nodiscard]] c10::Device second_device(int index = 0);
[[nodiscard]] c10::DeviceType type_of_second_device();

/// The stream in which memory of the device was last written by a copy from elsewhere, of this
/// process.
[[nodiscard]] c10::Stream stream_of_last_copy_to(c10::Device device);
/// A stream beside the default one, for c10::StreamGuard.
[[nodiscard]] c10::Stream side_stream(c10::Device device);

/// What a library of the device's own calls the stream; see comm::set_stream_handle().
[[nodiscard]] void* handle_of(c10::Stream stream);

}  // namespace argosy::test
