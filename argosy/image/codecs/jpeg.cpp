#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"
#include "argosy/image/codecs/jpeg_reader.h"

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
