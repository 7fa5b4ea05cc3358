#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "argosy/image/codec.h"
#include "argosy/image/image.h"

// One reader for each format. Readers ignore Orientation, which codec.cpp applies. They return
// kGray, kRgb or, only for Mode::kAsItIs, kRgba.
namespace argosy::image::codecs {

using Bytes = std::span<const uint8_t>;

[[nodiscard]] Image decode_jpeg(Bytes bytes, const DecodeOptions& options);
[[nodiscard]] Image decode_png(Bytes bytes, const DecodeOptions& options);
[[nodiscard]] Image decode_tiff(Bytes bytes, const DecodeOptions& options);
[[nodiscard]] Image decode_webp(Bytes bytes, const DecodeOptions& options);
[[nodiscard]] Image decode_bmp(Bytes bytes, const DecodeOptions& options);
[[nodiscard]] Image decode_pnm(Bytes bytes, const DecodeOptions& options);

[[nodiscard]] ImageInfo probe_jpeg(Bytes bytes, std::string_view name);
[[nodiscard]] ImageInfo probe_png(Bytes bytes, std::string_view name);
[[nodiscard]] ImageInfo probe_tiff(Bytes bytes, std::string_view name);
[[nodiscard]] ImageInfo probe_webp(Bytes bytes, std::string_view name);
[[nodiscard]] ImageInfo probe_bmp(Bytes bytes, std::string_view name);
[[nodiscard]] ImageInfo probe_pnm(Bytes bytes, std::string_view name);

/// Throws DataError when a header promises no pixel or more than `most_pixels`. Returns the size.
[[nodiscard]] Size checked_size(
    int64_t height, int64_t width, int64_t most_pixels, const char* where, std::string_view name);
/// Throws DataError when a codec would need `bytes` beside the picture.
void check_working_bytes(int64_t bytes,
                         int64_t most_bytes,
                         const char* where,
                         std::string_view name);

/// Returns an image to fill by rows. It is zero if the options accept missing rows.
[[nodiscard]] Image new_image(Size size, Order order, const DecodeOptions& options);

/// Returns the message about a file that ends early: "truncated: 12 of 40 rows came".
[[nodiscard]] std::string rows_that_came(int64_t rows, int64_t of);

/// Converts gray, RGB or RGBA to what `mode` says. The gray of RGB is (19595 R + 38470 G + 7471 B +
/// 2^15) / 2^16, as in Pillow's convert("L").
[[nodiscard]] Image to_mode(Image image, Mode mode);

/// Converts Adobe's CMYK (255 is no ink) to RGB, as Pillow does.
void adobe_cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, size_t pixels);

/// Undoes a camera's turn. `orientation` is EXIF's, 1 to 8.
[[nodiscard]] Image upright(Image image, int orientation);

/// Return the orientation in each format's metadata. 1: there is no valid one. Never throw.
[[nodiscard]] int orientation_in_jpeg(Bytes bytes);
[[nodiscard]] int orientation_in_png(Bytes bytes);
[[nodiscard]] int orientation_in_webp(Bytes bytes);
/// Takes a TIFF file, or EXIF's block, which has the form of one.
[[nodiscard]] int orientation_in_tiff(Bytes bytes);

// Read numbers in files. `at` must lie inside.
[[nodiscard]] inline uint32_t le16(Bytes b, size_t at) {
  return b[at] | uint32_t{b[at + 1]} << 8;
}
[[nodiscard]] inline uint32_t le32(Bytes b, size_t at) {
  return le16(b, at) | le16(b, at + 2) << 16;
}
[[nodiscard]] inline uint32_t be16(Bytes b, size_t at) {
  return uint32_t{b[at]} << 8 | b[at + 1];
}
[[nodiscard]] inline uint32_t be32(Bytes b, size_t at) {
  return be16(b, at) << 16 | be16(b, at + 2);
}
[[nodiscard]] inline bool starts_with(Bytes bytes, std::string_view magic, size_t at = 0) {
  return bytes.size() >= at + magic.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()) + at, magic.size()) == magic;
}

}  // namespace argosy::image::codecs
