#include "argosy/datasets/encoded_source.h"

#include "argosy/image/color.h"

namespace argosy::datasets {

image::Image EncodedSource::decoded(const Sample& sample, const PictureAs& as) const {
  if (sample.picture.kind == StoredPicture::Kind::kPixels) {
    return unpacked(sample.picture, as.order);
  }
  const image::Mode mode = !as.order                          ? image::Mode::kAsItIs
                           : *as.order == image::Order::kGray ? image::Mode::kGray
                                                              : image::Mode::kRgb;
  image::Image picture = image::decode(sample.picture.bytes,
                                       {.mode = mode, .damaged = as.damaged, .name = sample.name});
  return picture.order() == as.order.value_or(picture.order()) ? std::move(picture)
                                                               : image::convert(picture, *as.order);
}

}  // namespace argosy::datasets
