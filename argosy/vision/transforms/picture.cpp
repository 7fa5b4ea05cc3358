#include "argosy/vision/transforms/picture.h"

#include <fmt/ranges.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"

namespace argosy::vision {
namespace {

std::string type_name(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kByte:
      return "u8";
    case at::kFloat:
      return "f32";
    default:
      return c10::toString(tensor.scalar_type());
  }
}

/// `planes` planes of `pixels` values to pixels of `planes` values.
template <typename T>
void interleave(const T* from, T* to, int64_t planes, int64_t pixels) {
  for (int64_t c = 0; c < planes; ++c) {
    for (int64_t i = 0; i < pixels; ++i) {
      to[i * planes + c] = from[c * pixels + i];
    }
  }
}

template <typename T>
void deinterleave(const T* from, T* to, int64_t planes, int64_t pixels) {
  for (int64_t c = 0; c < planes; ++c) {
    for (int64_t i = 0; i < pixels; ++i) {
      to[c * pixels + i] = from[i * planes + c];
    }
  }
}

bool is_chw(const TensorImage& tensor) {
  const at::Tensor& chw = tensor.chw;
  return tensor.order.has_value() && chw.defined() && chw.dim() == 3 &&
         chw.size(0) == image::channels_of(*tensor.order) &&
         chw.numel() / chw.size(0) <= image::Image::kMostPixels;
}

std::string describe(const TensorImage& tensor) {
  if (!tensor.chw.defined()) {
    return "an undefined tensor";
  }
  return fmt::format(
      "a tensor {} ({}, {})",
      text::shape(tensor.chw),
      tensor.order.has_value() ? image::to_string(*tensor.order) : "no known channels",
      type_name(tensor.chw));
}

}  // namespace

Picture::Picture(image::Image image) : pixels_(std::move(image)) {
  ARGOSY_CHECK(!this->image().empty(), "vision.Picture", "expected an image, got an empty one");
}

Picture::Picture(TensorImage tensor) : pixels_(std::move(tensor)) {
  const TensorImage& held = this->tensor();
  ARGOSY_CHECK(
      is_chw(held) && held.chw.size(1) > 0 && held.chw.size(2) > 0,
      "vision.Picture",
      "expected a tensor [channels, height, width] with 1 (gray), 3 (RGB, BGR) or 4 (RGBA) "
      "channels, got {}",
      vision::describe(held));
}

Picture::Picture(at::Tensor chw) : Picture(TensorImage{chw, usual_order(chw)}) {}

Picture::Picture(KeypointImage with_points) : Picture(std::move(with_points.image)) {
  ARGOSY_CHECK(
      with_points.points.defined(), "vision.Picture", "expected points, got an undefined tensor");
  set_points(std::move(with_points.points));
}

const image::Image& Picture::image() const& {
  ARGOSY_CHECK(is_image(), "vision.Picture", "expected an image, got {}", describe());
  return std::get<image::Image>(pixels_);
}

image::Image Picture::image() && {
  ARGOSY_CHECK(is_image(), "vision.Picture", "expected an image, got {}", describe());
  return std::move(std::get<image::Image>(pixels_));
}

image::Image Picture::take_image() {
  return std::move(*this).image();
}

const TensorImage& Picture::tensor() const {
  ARGOSY_CHECK(!is_image(), "vision.Picture", "expected a tensor, got {}", describe());
  return std::get<TensorImage>(pixels_);
}

image::Size Picture::size() const {
  if (is_image()) {
    return image().size();
  }
  ARGOSY_CHECK(
      is_chw(tensor()), "vision.Picture", "expected an image or a CHW tensor, got {}", describe());
  return {.height = static_cast<int>(tensor().chw.size(1)),
          .width = static_cast<int>(tensor().chw.size(2))};
}

std::optional<image::Order> Picture::order() const {
  return is_image() ? std::optional(image().order()) : tensor().order;
}

void Picture::set_tensor(TensorImage tensor) {
  if (!is_chw(tensor)) {
    tensor.order.reset();
  }
  pixels_ = std::move(tensor);
}

void Picture::set_points(at::Tensor points) {
  ARGOSY_CHECK(!points.defined() || (points.scalar_type() == at::kFloat && points.dim() == 2 &&
                                     points.size(1) == 2 && points.is_cpu()),
               "vision.Picture",
               "expected points as f32 [K, 2] (x, y) on the CPU, got {} {}",
               type_name(points),
               text::shape(points));
  points_ = std::move(points);
}

void Picture::map_points(const image::PointMap& map) {
  if (!points_.defined()) {
    return;
  }
  const image::PointMap of_indices = map.of_indices();
  const at::Tensor from = points_.contiguous();
  at::Tensor to = at::empty(from.sizes(), at::kFloat);
  const auto* in = from.data_ptr<float>();
  auto* out = to.data_ptr<float>();
  for (int64_t i = 0; i < from.size(0); ++i, in += 2, out += 2) {
    const image::PointF point = image::map_point(of_indices, {in[0], in[1]});
    out[0] = static_cast<float>(point.x);
    out[1] = static_cast<float>(point.y);
  }
  points_ = std::move(to);
}

std::string Picture::describe() const {
  if (!is_image()) {
    return vision::describe(tensor());
  }
  const image::Image& held = std::get<image::Image>(pixels_);
  return fmt::format("an image of {} x {} pixels ({}, {})",
                     held.height(),
                     held.width(),
                     image::to_string(held.order()),
                     image::to_string(held.type()));
}

std::optional<image::Order> usual_order(const at::Tensor& chw) {
  if (!chw.defined() || chw.dim() != 3) {
    return std::nullopt;
  }
  switch (chw.size(0)) {
    case 1:
      return image::Order::kGray;
    case 3:
      return image::Order::kRgb;
    case 4:
      return image::Order::kRgba;
    default:
      return std::nullopt;
  }
}

at::Tensor to_chw(const image::Image& image) {
  const int64_t planes = image.channels();
  const int64_t pixels = int64_t{image.height()} * image.width();
  const bool bytes = image.type() == image::Type::kU8;
  at::Tensor out =
      at::empty({planes, image.height(), image.width()}, bytes ? at::kByte : at::kFloat);
  if (bytes) {
    deinterleave(image.row<uint8_t>(0), out.data_ptr<uint8_t>(), planes, pixels);
  } else {
    deinterleave(image.row<float>(0), out.data_ptr<float>(), planes, pixels);
  }
  return out;
}

image::Image to_hwc(const TensorImage& tensor, std::string_view where) {
  const at::Tensor& chw = tensor.chw;
  ARGOSY_CHECK(is_chw(tensor) && chw.is_cpu() &&
                   (chw.scalar_type() == at::kByte || chw.scalar_type() == at::kFloat),
               where,
               "expected an image or a CHW tensor of u8 or f32 on the CPU, got {}",
               describe(tensor));
  const at::Tensor dense = chw.contiguous();
  const bool bytes = chw.scalar_type() == at::kByte;
  image::Image out(
      {.height = static_cast<int>(chw.size(1)), .width = static_cast<int>(chw.size(2))},
      *tensor.order,
      bytes ? image::Type::kU8 : image::Type::kF32);
  const int64_t pixels = chw.size(1) * chw.size(2);
  if (bytes) {
    interleave(dense.data_ptr<uint8_t>(), out.row<uint8_t>(0), chw.size(0), pixels);
  } else {
    interleave(dense.data_ptr<float>(), out.row<float>(0), chw.size(0), pixels);
  }
  return out;
}

}  // namespace argosy::vision
