#include <png.h>

#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"
#include "argosy/image/codecs/escape.h"

namespace argosy::image {
namespace {

int color_of(Order order) {
  switch (order) {
    case Order::kGray:
      return PNG_COLOR_TYPE_GRAY;
    case Order::kRgba:
      return PNG_COLOR_TYPE_RGB_ALPHA;
    default:
      return PNG_COLOR_TYPE_RGB;
  }
}

class Writer final {
 public:
  Writer() {
    png_ = png_create_write_struct(
        PNG_LIBPNG_VER_STRING,
        this,
        [](png_struct* png, const char*) {
          static_cast<Writer*>(png_get_error_ptr(png))->escape_.leave();
        },
        [](png_struct*, const char*) {});
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
  }
  ~Writer() { png_destroy_write_struct(&png_, &info_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  std::vector<uint8_t> write(const Image& image) {
    const bool done = info_ != nullptr && escape_.run([&] {
      png_set_write_fn(png_, this, on_write, nullptr);
      png_set_IHDR(png_,
                   info_,
                   static_cast<png_uint_32>(image.width()),
                   static_cast<png_uint_32>(image.height()),
                   8,
                   color_of(image.order()),
                   PNG_INTERLACE_NONE,
                   PNG_COMPRESSION_TYPE_DEFAULT,
                   PNG_FILTER_TYPE_DEFAULT);
      png_write_info(png_, info_);
      if (image.order() == Order::kBgr) {
        png_set_bgr(png_);
      }
      for (int y = 0; y < image.height(); ++y) {
        png_write_row(png_, image.row<uint8_t>(y));
      }
      png_write_end(png_, nullptr);
    });
    if (!done) {
      throw InternalError("image.encode_png", "libpng could not write to memory");
    }
    return std::move(bytes_);
  }

 private:
  static void on_write(png_struct* png, png_byte* from, size_t count) {
    auto& bytes = static_cast<Writer*>(png_get_io_ptr(png))->bytes_;
    bool stored = true;
    try {
      bytes.insert(bytes.end(), from, from + count);
    } catch (const std::bad_alloc&) {  // it must not pass through C
      stored = false;
    }
    if (!stored) {
      png_error(png, "no memory");
    }
  }

  codecs::Escape escape_{};
  png_struct* png_ = nullptr;
  png_info* info_ = nullptr;
  std::vector<uint8_t> bytes_{};
};

}  // namespace

std::vector<uint8_t> encode_png(const Image& image) {
  ARGOSY_CHECK(!image.empty() && image.type() == Type::kU8,
               "image.encode_png",
               "expected a u8 image, got {}",
               image.empty() ? "an empty one" : to_string(image.type()));
  return Writer().write(image);
}

}  // namespace argosy::image
