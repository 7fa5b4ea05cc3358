#pragma once

#include <string>

#include <c10/core/ScalarType.h>

// Internal to the room.
namespace argosy::vision::ops::device {

/// The kernels of norm_relu_device.h for images of a type.
[[nodiscard]] std::string norm_relu_source(at::ScalarType type);

}  // namespace argosy::vision::ops::device
