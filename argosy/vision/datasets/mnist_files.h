#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "argosy/vision/split.h"

namespace argosy::vision::detail {

/// What Mnist and FashionMnist differ in.
struct MnistFlavour {
  const char* where;                ///< "vision.Mnist", for messages
  const char* subfolder;            ///< torchvision's, below its root
  const char* advice;               ///< where the files come from
  const std::string_view* classes;  ///< ten names
};

/// The two arrays of a split, checked.
struct MnistArrays {
  at::Tensor images;  ///< u8 [N, 28, 28]
  at::Tensor labels;  ///< i64 [N], each 0 to 9
};

/// Errors: see FashionMnist.
[[nodiscard]] MnistArrays read_mnist(const std::string& folder,
                                     Split split,
                                     const MnistFlavour& flavour);

}  // namespace argosy::vision::detail
