#include "argosy/image/image.h"

#include <cstring>
#include <utility>

#include "argosy/base/check.h"

namespace argosy::image {

std::string_view to_string(Order order) {
  switch (order) {
    case Order::kGray:
      return "gray";
    case Order::kRgb:
      return "RGB";
    case Order::kBgr:
      return "BGR";
    case Order::kRgba:
      return "RGBA";
  }
  return "?";
}

std::string_view to_string(Type type) {
  return type == Type::kU8 ? "u8" : "f32";
}

Image::Image(Size size, Order order, Type type) : size_(size), order_(order), type_(type) {
  ARGOSY_CHECK(size.height > 0 && size.width > 0,
               "image.Image",
               "expected at least 1 x 1 pixels, got {} x {}",
               size.height,
               size.width);
  ARGOSY_CHECK(int64_t{size.height} * size.width <= kMostPixels,
               "image.Image",
               "expected at most {} pixels, got {} x {}",
               kMostPixels,
               size.height,
               size.width);
  bytes_.reset(new std::byte[total_bytes()]);  // NOLINT(modernize-make-unique): that would zero it
}

Image::Image(const Image& other) : size_(other.size_), order_(other.order_), type_(other.type_) {
  if (!other.empty()) {
    bytes_.reset(new std::byte[total_bytes()]);  // NOLINT(modernize-make-unique): as above
    std::memcpy(bytes_.get(), other.data(), total_bytes());
  }
}

Image& Image::operator=(const Image& other) {
  return *this = Image(other);
}

Image::Image(Image&& other) noexcept
    : size_(std::exchange(other.size_, {})),
      order_(other.order_),
      type_(other.type_),
      bytes_(std::move(other.bytes_)) {}

Image& Image::operator=(Image&& other) noexcept {
  size_ = std::exchange(other.size_, {});
  order_ = other.order_;
  type_ = other.type_;
  bytes_ = std::move(other.bytes_);
  return *this;
}

void Image::set_order(Order order) {
  ARGOSY_CHECK(channels_of(order) == channels(),
               "image.set_order",
               "{} has {} channels, the image has {} ({})",
               to_string(order),
               channels_of(order),
               channels(),
               to_string(order_));
  order_ = order;
}

}  // namespace argosy::image
