#include "argosy/image/color_alpha.h"

namespace argosy::image::detail {
namespace {

template <typename Change>
void change_colors(const Image& from, Image& to, Change change) {
  for (int y = 0; y < from.height(); ++y) {
    const auto* in = from.row<uint8_t>(y);
    auto* out = to.row<uint8_t>(y);
    for (int x = 0; x < from.width(); ++x, in += 4, out += 4) {
      const uint8_t alpha = in[3];
      out[0] = change(in[0], alpha);
      out[1] = change(in[1], alpha);
      out[2] = change(in[2], alpha);
      out[3] = alpha;
    }
  }
}

}  // namespace

Image premultiply(const Image& image) {
  Image result(image.size(), image.order());
  change_colors(image, result, premultiplied);
  return result;
}

void unpremultiply(Image& image) {
  change_colors(image, image, unpremultiplied);
}

}  // namespace argosy::image::detail
