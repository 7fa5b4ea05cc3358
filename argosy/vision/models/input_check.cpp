#include "argosy/vision/models/input_check.h"

#include <fmt/ranges.h>

#include "argosy/base/check.h"

namespace argosy::vision {

void check_grey_28x28(const at::Tensor& images, std::string_view where) {
  ARGOSY_CHECK(
      images.defined() && images.dim() == 4 && images.size(1) == 1 && images.size(2) == 28 &&
          images.size(3) == 28,
      where,
      "input has the wrong shape: expected [N, 1, 28, 28], got [{}]{}",
      fmt::join(images.defined() ? images.sizes() : at::IntArrayRef(), ", "),
      images.defined() && images.dim() == 3 ? ". Use images.unsqueeze(0) for one image" : "");
}

}  // namespace argosy::vision
