#include "argosy/vision/models/input_check.h"

#include <fmt/ranges.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"

namespace argosy::vision {

void check_images(const at::Tensor& images,
                  const std::array<int64_t, 3>& chw,
                  std::string_view where) {
  ARGOSY_CHECK(
      images.defined() && images.dim() == 4 && images.sizes().slice(1) == chw,
      where,
      "input has the wrong shape: expected [N, {}], got {}{}",
      fmt::join(chw, ", "),
      text::shape(images),
      images.defined() && images.dim() == 3 ? ". Use images.unsqueeze(0) for one image" : "");
}

at::Tensor as_channels_last(const at::Tensor& images_n1hw) {
  return images_n1hw.squeeze(1).unsqueeze(-1).permute({0, 3, 1, 2});
}

}  // namespace argosy::vision
