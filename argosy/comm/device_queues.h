#pragma once

#include <memory>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "argosy/transport/device_queue.h"

namespace argosy::comm {

/// Queues of `device` for a transport: each is a stream of libtorch's pool, its memory libtorch's.
[[nodiscard]] std::shared_ptr<transport::DeviceQueues> queues_of(c10::Device device);
/// The stream of a queue that queues_of() made.
[[nodiscard]] c10::Stream stream_of(const transport::DeviceQueue& queue);

/// Returns what the device's own library calls the stream, such as a cudaStream_t.
using StreamHandle = void* (*)(c10::Stream stream);
/// Returns the device's address on the bus of its host.
using DeviceAddress = std::string (*)(c10::Device device);
/// Says how streams of devices of `type` are called there, and where the devices are. CUDA's and
/// ROCm's are known where libtorch has them. For tests, and devices that come by a library of their
/// own.
void set_stream_handle(c10::DeviceType type, StreamHandle handle, DeviceAddress address = nullptr);
/// Whether transports can use streams of such devices.
[[nodiscard]] bool has_stream_handle(c10::DeviceType type);

}  // namespace argosy::comm
