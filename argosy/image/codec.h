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

/// The format that the first bytes announce; nullopt: none of decode()'s. Names are not looked at.
[[nodiscard]] std::optional<Format> sniff(std::span<const uint8_t> bytes);

/// The channels of decode()'s result.
///
/// * kAsItIs: gray stays gray and color becomes RGB. With transparency (PNG, TIFF, WebP, BMP) both
///   become RGBA.
/// * kGray, kRgb: the picture is converted. Transparency is dropped, not blended, as by Pillow's
///   convert(). Gray is Rec. 601's luma with Pillow's rounding; for a YCbCr JPEG it is the Y
///   channel, as in torchvision's decode_jpeg and Pillow's draft().
enum class Mode : uint8_t { kAsItIs, kGray, kRgb };

/// What to do with the orientation that a camera noted in EXIF.
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
  /// A header that promises more is an error, before anything is allocated. At most
  /// Image::kMostPixels.
  int64_t most_pixels = Image::kMostPixels;
  /// What a codec may allocate beside the picture: a progressive JPEG needs 2 bytes for each sample
  /// (6 or 3 per pixel), others a few rows; TIFF and lossless WebP up to 4 per pixel.
  int64_t most_working_bytes = int64_t{2} << 30;
  /// Name of the file or archive member, for messages.
  std::string_view name{};
};

/// What a header says of a picture.
struct ImageInfo {
  Format format = Format::kJpeg;
  Size size{};          ///< as stored: before the orientation is applied
  int channels = 0;     ///< as stored, transparency included: a palette is 1, a CMYK JPEG 4
  int bits = 8;         ///< of each channel
  int orientation = 1;  ///< EXIF's: 1 upright, 2…8; 1 where nothing is noted
};

/// Reads the header and decodes nothing. No limit of pixels applies.
/// Errors: DataError: no known format, or a header that cannot be read.
[[nodiscard]] ImageInfo probe(std::span<const uint8_t> bytes, std::string_view name = {});

/// Decodes a picture from memory into u8.
///
///     Image photo = decode(bytes, {.mode = Mode::kRgb, .name = path});
///
/// JPEG: baseline, progressive, arithmetic; gray, YCbCr, RGB; CMYK and YCCK are taken as Adobe's
/// (inverted), as Pillow takes them, and become RGB by its formula. PNG: all kinds; 16 bits become
/// 8 by rounding v · 255 / 65535 (Pillow cuts the lower byte off RGB and keeps gray at 16). TIFF:
/// what libtiff can make RGBA of, first page; of 16-bit gray the upper byte. WebP: lossy and
/// lossless; an animation is an error. BMP: 1 to 32 bits without run lengths. PNM: P1 to P6; a
/// maximum other than 255 is scaled to it.
///
/// Pixels are Pillow's bit for bit, but for 16 bits and PNM maxima that leave halves to round.
///
/// Thread-safe. Errors: DataError "image.jpeg", "image.png", … with name: damage (see Damaged), a
/// promise above the limits; "image.decode": no known format. libjpeg's warnings of corrupt data
/// are damage. Cost: the pixels and what DecodeOptions::most_working_bytes says.
[[nodiscard]] Image decode(std::span<const uint8_t> bytes, const DecodeOptions& options = {});

/// decode() of a file; its path is the name in messages unless options.name says another.
/// Errors: as decode(); DataError "image.open": cannot be read, or larger than 2^31 bytes.
[[nodiscard]] Image decode_file(const std::string& path, const DecodeOptions& options = {});

/// The bytes of a regular file. Errors: DataError "image.open".
[[nodiscard]] std::vector<uint8_t> read_file(const std::string& path);

/// A PNG of a u8 image (gray, RGB, BGR, RGBA), 8 bits a channel. Errors: UsageError: empty, or f32.
[[nodiscard]] std::vector<uint8_t> encode_png(const Image& image);

/// A baseline JPEG with chroma at half size (4:2:0), as Pillow writes it. Transparency is dropped.
/// Errors: UsageError: empty, f32, sides above 65535, quality outside 1…100.
[[nodiscard]] std::vector<uint8_t> encode_jpeg(const Image& image, int quality = 75);

/// Writes a file whole or not at all: into a temporary one beside it, which is synced and renamed.
/// Errors: DataError "image.write" with path.
void write_file(const std::string& path, std::span<const uint8_t> bytes);

}  // namespace argosy::image
