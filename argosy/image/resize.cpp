#include "argosy/image/resize.h"

#include <vector>

#include "argosy/image/color_alpha.h"
#include "argosy/image/resize_kernels.h"
#include "argosy/image/resize_plan.h"
#include "argosy/image/resize_weights.h"

namespace argosy::image {
namespace {

using detail::Taps;

BoxF all_of(const Image& image) {
  return {0, 0, static_cast<double>(image.height()), static_cast<double>(image.width())};
}

Image resize_u8(const Image& image, const BoxF& box, Size size, const ResizeOptions& options) {
  Resampler resampler(
      image.size(), box, size, image.channels(), {options.interpolation, options.antialias});
  Image result(size, image.order());
  resampler.start(image.row<uint8_t>(0), image.row_bytes());
  for (int y = 0; y < size.height; ++y) {
    resampler.next(result.row<uint8_t>(y));
  }
  return result;
}

/// Each row of an f32 image in a new width.
Image across_f32(const Image& image, const Taps<double>& taps) {
  Image result({image.height(), taps.size()}, image.order(), Type::kF32);
  for (int y = 0; y < image.height(); ++y) {
    detail::weigh_columns(image.row<float>(y), taps, image.channels(), result.row<float>(y));
  }
  return result;
}

Image down_f32(const Image& image, const Taps<double>& taps) {
  Image result({taps.size(), image.width()}, image.order(), Type::kF32);
  std::vector<const float*> rows;
  for (int y = 0; y < taps.size(); ++y) {
    rows.clear();
    for (int k = 0; k < taps.count[static_cast<size_t>(y)]; ++k) {
      rows.push_back(image.row<float>(taps.first[static_cast<size_t>(y)] + k));
    }
    detail::weigh_rows(rows.data(),
                       taps.of(y),
                       static_cast<int>(rows.size()),
                       int64_t{image.width()} * image.channels(),
                       result.row<float>(y));
  }
  return result;
}

Image resize_f32(const Image& image, const BoxF& box, Size size, const ResizeOptions& options) {
  const detail::Edges edges = detail::edges_of(box, image.size());
  detail::check_target(size);
  Taps<double> across, down;
  detail::make_taps({image.width(), edges.left, edges.right, size.width}, options, across);
  detail::make_taps({image.height(), edges.top, edges.bottom, size.height}, options, down);
  return detail::down_first(image.size(), size, options.antialias)
             ? across_f32(down_f32(image, down), across)
             : down_f32(across_f32(image, across), down);
}

}  // namespace

std::string_view to_string(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return "nearest";
    case Interpolation::kBilinear:
      return "bilinear";
    case Interpolation::kBicubic:
      return "bicubic";
    case Interpolation::kBox:
      return "box";
    case Interpolation::kHamming:
      return "hamming";
    case Interpolation::kLanczos:
      return "lanczos";
  }
  return "?";
}

Image resize(const Image& image, Size size, const ResizeOptions& options) {
  return resize(image, all_of(image), size, options);
}

Image shrunk(const Image& image, int most) {
  const double scale = static_cast<double>(most) / std::max(image.height(), image.width());
  const auto side = [&](int of) { return std::max(1, static_cast<int>(std::lround(of * scale))); };
  return scale >= 1 && !image.empty()
             ? image
             : resize(image, {.height = side(image.height()), .width = side(image.width())});
}

Image resize(const Image& image, const BoxF& source, Size size, const ResizeOptions& options) {
  detail::check_options(options.interpolation, options.antialias);
  if (image.type() == Type::kF32) {
    return resize_f32(image, source, size, options);
  }
  if (image.order() != Order::kRgba || options.interpolation == Interpolation::kNearest) {
    return resize_u8(image, source, size, options);
  }
  if (size == image.size() && source == all_of(image)) {
    return image;
  }
  Image result = resize_u8(detail::premultiply(image), source, size, options);
  detail::unpremultiply(result);
  return result;
}

}  // namespace argosy::image
