#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace argosy::image {

/// The meaning of a pixel's channels, in their order. Every image keeps it, so that a step that
/// needs RGB and gets BGR reports it instead of training on it.
enum class Order : uint8_t { kGray, kRgb, kBgr, kRgba };

/// The type of one channel of a pixel.
enum class Type : uint8_t { kU8, kF32 };

[[nodiscard]] constexpr int channels_of(Order order) {
  return order == Order::kGray ? 1 : order == Order::kRgba ? 4 : 3;
}
[[nodiscard]] constexpr size_t bytes_of(Type type) {
  return type == Type::kU8 ? 1 : 4;
}
[[nodiscard]] std::string_view to_string(Order order);  ///< "gray", "RGB", …
[[nodiscard]] std::string_view to_string(Type type);    ///< "u8", "f32"

struct Size {
  int height = 0;
  int width = 0;
  bool operator==(const Size&) const = default;
};

/// Rows and columns [top, top + height) × [left, left + width) of an image.
struct Box {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
  bool operator==(const Box&) const = default;
};

/// A picture in memory: rows from the top, pixels from the left, channels of a pixel side by side
/// (HWC), rows without gaps. u8 means 0 to 255; the meaning of f32 is up to its maker.
///
///     Image photo = decode(bytes);
///     uint8_t red = photo.row<uint8_t>(y)[x * photo.channels()];
///
/// It is a value: copying copies the pixels, moving does not. New pixels are uninitialised.
/// Errors: UsageError for sizes below 1 or of more than kMostPixels pixels.
class Image final {
 public:
  /// 2^28. A larger image is taken for damage or an attack, as Pillow does from 1.8 · 10^8.
  static constexpr int64_t kMostPixels = int64_t{1} << 28;

  Image() = default;  ///< empty: 0 × 0
  Image(Size size, Order order, Type type = Type::kU8);
  Image(const Image& other);
  Image& operator=(const Image& other);
  Image(Image&&) noexcept;
  Image& operator=(Image&&) noexcept;
  ~Image() = default;

  [[nodiscard]] bool empty() const { return bytes_ == nullptr; }
  [[nodiscard]] Size size() const { return size_; }
  [[nodiscard]] int height() const { return size_.height; }
  [[nodiscard]] int width() const { return size_.width; }
  [[nodiscard]] Order order() const { return order_; }
  [[nodiscard]] Type type() const { return type_; }
  [[nodiscard]] int channels() const { return channels_of(order_); }
  [[nodiscard]] size_t row_bytes() const {
    return static_cast<size_t>(width()) * static_cast<size_t>(channels()) * bytes_of(type_);
  }
  [[nodiscard]] size_t total_bytes() const { return row_bytes() * static_cast<size_t>(height()); }

  /// Returns the first byte of the pixels. nullptr: the image is empty.
  [[nodiscard]] std::byte* data() { return bytes_.get(); }
  [[nodiscard]] const std::byte* data() const { return bytes_.get(); }
  /// Returns row y, 0 ≤ y < height(). T must be what type() says: uint8_t or float.
  template <typename T>
  [[nodiscard]] T* row(int y) {
    return reinterpret_cast<T*>(data() + static_cast<size_t>(y) * row_bytes());
  }
  template <typename T>
  [[nodiscard]] const T* row(int y) const {
    return reinterpret_cast<const T*>(data() + static_cast<size_t>(y) * row_bytes());
  }

  /// Changes the meaning of the channels and moves nothing, for instance between RGB and BGR.
  /// Errors: UsageError when the number of channels differs.
  void set_order(Order order);

 private:
  Size size_{};
  Order order_ = Order::kGray;
  Type type_ = Type::kU8;
  std::unique_ptr<std::byte[]> bytes_{};
};

}  // namespace argosy::image
