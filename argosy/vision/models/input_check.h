#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

namespace argosy::vision {

/// Throws UsageError naming `where` unless `images` is [N, 1, 28, 28].
void check_grey_28x28(const at::Tensor& images, std::string_view where);

}  // namespace argosy::vision
