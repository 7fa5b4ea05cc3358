#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"
#include "argosy/image/codecs/escape.h"
#include "argosy/image/codecs/jpeg_reader.h"
#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {
namespace {

/// Gray comes from libjpeg where it is a channel of the file; else from RGB, with Pillow's weights.
J_COLOR_SPACE wanted_space(const jpeg_decompress_struct& info, Mode mode) {
  switch (info.jpeg_color_space) {
    case JCS_GRAYSCALE:
      return mode == Mode::kRgb ? JCS_RGB : JCS_GRAYSCALE;
    case JCS_YCbCr:
      return mode == Mode::kGray ? JCS_GRAYSCALE : JCS_RGB;
    case JCS_CMYK:
    case JCS_YCCK:
      return JCS_CMYK;
    default:
      return JCS_RGB;
  }
}

/// Reads rows as long as they come; false: not all did.
bool read_rows(JpegReader& reader, Image& image) {
  jpeg_decompress_struct& info = reader.info();
  return reader.try_run([&] {
    while (info.output_scanline < info.output_height) {
      std::array<JSAMPROW, 8> rows;
      JDIMENSION count = 0;
      while (count < rows.size() && info.output_scanline + count < info.output_height) {
        rows[count] = image.row<uint8_t>(static_cast<int>(info.output_scanline + count));
        ++count;
      }
      (void)jpeg_read_scanlines(&info, rows.data(), count);
    }
  });
}

/// The same for CMYK, which no Image can hold.
bool read_cmyk_rows(JpegReader& reader, Image& image) {
  jpeg_decompress_struct& info = reader.info();
  std::vector<uint8_t> cmyk(size_t{info.output_width} * 4);
  JSAMPROW row = cmyk.data();
  return reader.try_run([&] {
    while (info.output_scanline < info.output_height) {
      uint8_t* const rgb = image.row<uint8_t>(static_cast<int>(info.output_scanline));
      (void)jpeg_read_scanlines(&info, &row, 1);
      adobe_cmyk_to_rgb(row, rgb, info.output_width);
    }
  });
}

}  // namespace

Image decode_jpeg(Bytes bytes, const DecodeOptions& options) {
  JpegReader reader;
  reader.open(
      bytes, {options.damaged, options.most_pixels, options.most_working_bytes}, options.name);
  jpeg_decompress_struct& info = reader.info();
  info.out_color_space = wanted_space(info, options.mode);
  reader.run([&] { jpeg_start_decompress(&info); });
  const Size size{static_cast<int>(info.output_height), static_cast<int>(info.output_width)};
  const bool cmyk = info.out_color_space == JCS_CMYK;
  const bool gray = info.out_color_space == JCS_GRAYSCALE;
  Image image = new_image(size, gray ? Order::kGray : Order::kRgb, options);
  const bool whole = cmyk ? read_cmyk_rows(reader, image) : read_rows(reader, image);
  if (!whole && options.damaged != Damaged::kAccept) {
    reader.fail();
  }
  return to_mode(std::move(image), options.mode);
}

ImageInfo probe_jpeg(Bytes bytes, std::string_view name) {
  JpegReader reader;
  // The size is told, not used: nothing is decoded.
  reader.open(bytes, {.damaged = Damaged::kAccept}, name);
  const jpeg_decompress_struct& info = reader.info();
  return {Format::kJpeg,
          {static_cast<int>(info.image_height), static_cast<int>(info.image_width)},
          info.num_components,
          info.data_precision,
          orientation_in_jpeg(bytes)};
}

}  // namespace argosy::image::codecs

namespace argosy::image {
namespace {

/// libjpeg's compressor, and the memory that it writes into.
class JpegWriter final {
 public:
  JpegWriter() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) {
      static_cast<codecs::Escape*>(info->client_data)->leave();
    };
    errors_.emit_message = [](j_common_ptr, int) {};
    info_.client_data = &escape_;
  }
  ~JpegWriter() {
    jpeg_destroy_compress(&info_);
    std::free(bytes_);  // NOLINT(cppcoreguidelines-no-malloc): libjpeg's
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

  std::vector<uint8_t> write(const Image& image, int quality) {
    const bool done = escape_.run([&] {
      jpeg_create_compress(&info_);
      jpeg_mem_dest(&info_, &bytes_, &count_);
      set_up(image, quality);
      jpeg_start_compress(&info_, TRUE);
      while (info_.next_scanline < info_.image_height) {
        // libjpeg only reads from it.
        auto* row = const_cast<uint8_t*>(image.row<uint8_t>(static_cast<int>(info_.next_scanline)));
        (void)jpeg_write_scanlines(&info_, &row, 1);
      }
      jpeg_finish_compress(&info_);
    });
    if (!done) {
      std::array<char, JMSG_LENGTH_MAX> text{};
      errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), text.data());
      throw InternalError("image.encode_jpeg", text.data());
    }
    return {bytes_, bytes_ + count_};
  }

 private:
  void set_up(const Image& image, int quality) {
    info_.image_height = static_cast<JDIMENSION>(image.height());
    info_.image_width = static_cast<JDIMENSION>(image.width());
    info_.input_components = image.channels();
    switch (image.order()) {
      case Order::kGray:
        info_.in_color_space = JCS_GRAYSCALE;
        break;
      case Order::kRgb:
        info_.in_color_space = JCS_RGB;
        break;
      case Order::kBgr:
        info_.in_color_space = JCS_EXT_BGR;
        break;
      case Order::kRgba:
        info_.in_color_space = JCS_EXT_RGBX;
        break;
    }
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
  }

  codecs::Escape escape_{};
  jpeg_error_mgr errors_{};
  jpeg_compress_struct info_{};
  unsigned char* bytes_ = nullptr;
  unsigned long count_ = 0;
};

}  // namespace

std::vector<uint8_t> encode_jpeg(const Image& image, int quality) {
  ARGOSY_CHECK(!image.empty() && image.type() == Type::kU8,
               "image.encode_jpeg",
               "expected a u8 image, got {}",
               image.empty() ? "an empty one" : to_string(image.type()));
  ARGOSY_CHECK(image.height() <= JPEG_MAX_DIMENSION && image.width() <= JPEG_MAX_DIMENSION,
               "image.encode_jpeg",
               "expected at most {} rows and columns, got {} x {}",
               JPEG_MAX_DIMENSION,
               image.height(),
               image.width());
  ARGOSY_CHECK(quality >= 1 && quality <= 100,
               "image.encode_jpeg",
               "expected a quality from 1 to 100, got {}",
               quality);
  return JpegWriter().write(image, quality);
}

}  // namespace argosy::image
