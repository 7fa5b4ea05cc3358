#pragma once

#include <string_view>
#include <utility>

#include "argosy/vision/transforms/picture.h"

// Internal to the transforms.
namespace argosy::vision::detail {

/// Returns the picture with f(image) as its pixels; the points stay. A tensor becomes an image for
/// f and then a tensor again. Both conversions are exact, so a step has one arithmetic for both.
/// Errors: UsageError `[where] …` for a tensor that cannot become an image.
template <typename F>
Picture on_pixels(Picture picture, std::string_view where, const F& f) {
  if (picture.is_image()) {
    picture.set_image(f(picture.take_image()));
  } else {
    const image::Image out = f(to_hwc(picture.tensor(), where));
    picture.set_tensor({.chw = to_chw(out), .order = out.order()});
  }
  return picture;
}

}  // namespace argosy::vision::detail
