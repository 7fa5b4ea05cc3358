#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/image/image.h"

namespace argosy::image {

/// The formats of decode().
enum class Format : uint8_t { kJpeg, kPng, kTiff, kWebp, kBmp, kPnm };

[[nodiscard]] std::string_view to_string(Format format);  ///< "JPEG", "PNG", …

/// Returns the format that the first bytes announce, whatever the file's name is. nullopt: it is
/// none of decode()'s.
[[nodiscard]] std::optional<Format> sniff(std::span<const uint8_t> bytes);

/// The channels of decode()'s result.
///
/// * kAsItIs: gray stays gray and color becomes RGB. With transparency (PNG, TIFF, WebP, BMP) both
///   become RGBA.
/// * kGray, kRgb: the picture is converted. Transparency is dropped, not blended, as by Pillow's
///   convert(). Gray is Rec. 601's luma with Pillow's rounding; for a YCbCr JPEG it is the Y
///   channel, as in torchvision's decode_jpeg and Pillow's draft().
enum class Mode : uint8_t { kAsItIs, kGray, kRgb };

/// What decode() does with the orientation that a camera noted in EXIF.
enum class Orientation : uint8_t { kIgnore, kApply };

/// What decode() does with a damaged file of which some rows can be read.
///
/// * kRaise: it throws a DataError that says how many rows came.
/// * kAccept: it returns the rows that came. The rest is what the codec leaves: gray or smeared
///   rows in a JPEG, zeros elsewhere. Pillow does the same with LOAD_TRUNCATED_IMAGES. A header
///   that cannot be read remains an error.
/// * kRaiseTruncated: it throws for a file that ends early, and for damage in any format but JPEG.
///   It accepts other damage in a JPEG, as Pillow's open() does, and so torchvision and Paddle.
///   Published sets have such pictures: Flowers-102's image_06735.jpg lacks its last 54 rows.
enum class Damaged : uint8_t { kRaise, kRaiseTruncated, kAccept };

struct DecodeOptions {
  Mode mode = Mode::kAsItIs;
  Orientation orientation = Orientation::kIgnore;  ///< as Pillow's open() and torchvision
  Damaged damaged = Damaged::kRaise;
  /// Most pixels of a picture; at most Image::kMostPixels. A header that promises more is an error
  /// before anything is allocated.
  int64_t most_pixels = Image::kMostPixels;
  /// Most bytes that a codec may allocate beside the picture. A progressive JPEG needs 2 bytes for
  /// each sample (3 or 6 per pixel); TIFF and lossless WebP need up to 4 per pixel, others a few
  /// rows.
  int64_t most_working_bytes = int64_t{2} << 30;
  /// Name of the file or archive member, for messages.
  std::string_view name{};
};

/// What a header says about a picture.
struct ImageInfo {
  Format format = Format::kJpeg;
  Size size{};          ///< as stored, before the orientation is applied
  int channels = 0;     ///< as stored, transparency included: a palette is 1, a CMYK JPEG 4
  int bits = 8;         ///< bits of each channel
  int orientation = 1;  ///< EXIF's, 1 to 8; 1: upright, or nothing is noted
};

/// Reads the header and decodes nothing. No limit of pixels applies.
/// Errors: DataError when the format is unknown or the header cannot be read.
[[nodiscard]] ImageInfo probe(std::span<const uint8_t> bytes, std::string_view name = {});

/// Decodes a picture from memory into u8.
///
///     Image photo = decode(bytes, {.mode = Mode::kRgb, .name = path});
///
/// JPEG: baseline, progressive and arithmetic; gray, YCbCr and RGB. CMYK and YCCK are taken as
/// Adobe's (inverted), as in Pillow, and become RGB by its formula. PNG: all kinds; 16 bits become
/// 8 by rounding v · 255 / 65535 (Pillow cuts the lower byte off RGB and keeps gray at 16). TIFF:
/// everything that libtiff can turn into RGBA, first page; of 16-bit gray the upper byte. WebP:
/// lossy and lossless; an animation is an error. BMP: 1 to 32 bits without run lengths. PNM: P1 to
/// P6; a maximum other than 255 is scaled to it.
///
/// Pixels equal Pillow's bit for bit, except for 16 bits and for PNM maxima that leave halves to
/// round.
///
/// Thread-safe.
/// Errors: DataError "image.jpeg", "image.png", … with name, for damage (see Damaged) and for a
/// header that promises more than the limits; "image.decode" for an unknown format. libjpeg's
/// warnings of corrupt data count as damage.
/// Cost: the pixels, and what DecodeOptions::most_working_bytes says.
[[nodiscard]] Image decode(std::span<const uint8_t> bytes, const DecodeOptions& options = {});

/// Decodes a file. Messages name its path unless options.name is set.
/// Errors: as for decode(); DataError "image.open" when the file cannot be read or exceeds 2^31
/// bytes.
[[nodiscard]] Image decode_file(const std::string& path, const DecodeOptions& options = {});

/// Returns the bytes of a regular file. Errors: DataError "image.open".
[[nodiscard]] std::vector<uint8_t> read_file(const std::string& path);

/// Returns a PNG of a u8 image (gray, RGB, BGR, RGBA) with 8 bits per channel. Errors: UsageError
/// when the image is empty or f32.
[[nodiscard]] std::vector<uint8_t> encode_png(const Image& image);

/// Returns a baseline JPEG with chroma at half size (4:2:0), as Pillow writes it. Transparency is
/// dropped.
/// Errors: UsageError when the image is empty or f32, has sides above 65535, or quality is outside
/// 1 to 100.
[[nodiscard]] std::vector<uint8_t> encode_jpeg(const Image& image, int quality = 75);

/// Writes a file whole or not at all, by way of a file beside it, which is synced and renamed.
/// Errors: DataError "image.write" with path.
void write_file(const std::string& path, std::span<const uint8_t> bytes);

}  // namespace argosy::image
