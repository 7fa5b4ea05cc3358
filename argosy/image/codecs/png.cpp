#include <fmt/format.h>
#include <png.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"
#include "argosy/image/codecs/escape.h"

namespace argosy::image::codecs {
namespace {

// Deflate's best: a match of 258 bytes in 2 bits.
constexpr int64_t kLargestRatio = 1032;

/// libpng over bytes in memory. As in JpegReader, its errors leave the step that met them.
class PngReader final {
 public:
  PngReader(Bytes bytes, std::string_view name) : bytes_(bytes), name_(name) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw InternalError("image.png", "libpng could not start");
    }
    png_set_read_fn(png_, this, on_read);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  void read_header() {
    const bool done = escape_.run([&] {
      // Texts, profiles and the like are neither unpacked nor kept. The size is our own check's.
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_read_info(png_, info_);
    });
    if (!done) {
      fail("");
    }
  }

  /// Throws what the last failed step said.
  [[noreturn]] void fail(const std::string& after) const {
    throw DataError("image.png",
                    (ended_ ? "truncated" : "damaged: " + message_) + after,
                    {std::string(name_), static_cast<int64_t>(at_)});
  }

  template <typename Step>
  [[nodiscard]] bool try_run(Step step) {
    return escape_.run(step);
  }

  [[nodiscard]] png_struct* png() { return png_; }
  [[nodiscard]] png_info* info() { return info_; }
  [[nodiscard]] int64_t height() { return png_get_image_height(png_, info_); }
  [[nodiscard]] int64_t width() { return png_get_image_width(png_, info_); }

 private:
  // Nothing is allocated here: the text stands in a member whose memory is kept ready.
  static void on_error(png_struct* png, const char* text) {
    auto& self = *static_cast<PngReader*>(png_get_error_ptr(png));
    self.message_.assign(text, strnlen(text, kMostText));
    self.escape_.leave();
  }
  static void on_warning(png_struct*, const char*) {}
  static void on_read(png_struct* png, png_byte* to, size_t count) {
    auto& self = *static_cast<PngReader*>(png_get_io_ptr(png));
    const size_t left = self.bytes_.size() - self.at_;
    if (count > left) {
      if (self.ended_) {
        png_error(png, "truncated");
      }
      // Once with zeros: libpng asks for more than it needs for the next row. They are no pixels
      // that pass for sound, for the checksum is missing then, too.
      self.ended_ = true;
      std::memset(to + left, 0, count - left);
      count = left;
    }
    std::memcpy(to, self.bytes_.data() + self.at_, count);
    self.at_ += count;
  }

  static constexpr size_t kMostText = 200;
  Escape escape_{};
  Bytes bytes_;
  std::string_view name_;
  size_t at_ = 0;
  bool ended_ = false;
  std::string message_ = std::string(kMostText, ' ');
  png_struct* png_ = nullptr;
  png_info* info_ = nullptr;
};

/// Asks libpng for 8-bit gray, RGB or (kAsItIs) RGBA. Returns what comes.
Order set_transforms(PngReader& reader, Mode mode) {
  png_struct* png = reader.png();
  const int color = png_get_color_type(png, reader.info());
  const bool transparent =
      mode == Mode::kAsItIs && ((color & PNG_COLOR_MASK_ALPHA) != 0 ||
                                png_get_valid(png, reader.info(), PNG_INFO_tRNS) != 0);
  const bool gray = (color & PNG_COLOR_MASK_COLOR) == 0;
  png_set_scale_16(png);
  if (color == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(png);
  }
  if (gray) {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  if (!transparent) {
    png_set_strip_alpha(png);
    return gray ? Order::kGray : Order::kRgb;
  }
  png_set_tRNS_to_alpha(png);
  if (gray) {
    png_set_gray_to_rgb(png);
  }
  return Order::kRgba;
}

void check_promise(PngReader& reader, size_t bytes, const DecodeOptions& options) {
  const auto needed =
      static_cast<int64_t>(png_get_rowbytes(reader.png(), reader.info())) * reader.height();
  if (options.damaged != Damaged::kAccept && needed / kLargestRatio > static_cast<int64_t>(bytes)) {
    throw DataError(
        "image.png",
        fmt::format("truncated or damaged: the header promises {} x {} pixels, which {} "
                    "bytes cannot hold",
                    reader.height(),
                    reader.width(),
                    bytes),
        {std::string(options.name)});
  }
}

}  // namespace

Image decode_png(Bytes bytes, const DecodeOptions& options) {
  PngReader reader(bytes, options.name);
  reader.read_header();
  const Size size =
      checked_size(reader.height(), reader.width(), options.most_pixels, "image.png", options.name);
  check_promise(reader, bytes.size(), options);
  png_struct* png = reader.png();
  Order order = Order::kGray;
  int passes = 1;
  if (!reader.try_run([&] {
        order = set_transforms(reader, options.mode);
        passes = png_set_interlace_handling(png);
        png_read_update_info(png, reader.info());
      })) {
    reader.fail("");
  }
  Image image = new_image(size, order, options);
  if (png_get_rowbytes(png, reader.info()) != image.row_bytes()) {
    throw InternalError("image.png", "libpng's rows are of another length than ours");
  }
  int pass = 0;
  int y = 0;
  const bool whole = reader.try_run([&] {
    for (pass = 0; pass < passes; ++pass) {
      for (y = 0; y < size.height; ++y) {
        png_read_row(png, image.row<uint8_t>(y), nullptr);
      }
    }
  });
  if (!whole && options.damaged != Damaged::kAccept) {
    reader.fail("; " + rows_that_came(pass + 1 == passes ? y : 0, size.height));
  }
  return to_mode(std::move(image), options.mode);
}

ImageInfo probe_png(Bytes bytes, std::string_view name) {
  PngReader reader(bytes, name);
  reader.read_header();
  const Size size =
      checked_size(reader.height(), reader.width(), Image::kMostPixels, "image.png", name);
  return {Format::kPng,
          size,
          png_get_channels(reader.png(), reader.info()),
          png_get_bit_depth(reader.png(), reader.info()),
          orientation_in_png(bytes)};
}

}  // namespace argosy::image::codecs

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

class PngWriter final {
 public:
  PngWriter() {
    png_ = png_create_write_struct(
        PNG_LIBPNG_VER_STRING,
        this,
        [](png_struct* png, const char*) {
          static_cast<PngWriter*>(png_get_error_ptr(png))->escape_.leave();
        },
        [](png_struct*, const char*) {});
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

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
    auto& bytes = static_cast<PngWriter*>(png_get_io_ptr(png))->bytes_;
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
  return PngWriter().write(image);
}

}  // namespace argosy::image
