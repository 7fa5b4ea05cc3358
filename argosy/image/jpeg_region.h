#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "argosy/image/codec.h"
#include "argosy/image/image.h"

namespace argosy::image {

/// The code that reads the Huffman codes of a baseline JPEG. kOwn falls back to kLibjpeg where it
/// does not apply. Both give the same pixels.
enum class Entropy : uint8_t { kOwn, kLibjpeg };

struct JpegRegionOptions {
  /// The largest reduction that decode() may choose: 1, 2, 4 or 8. 1: always full scale.
  int largest_reduction = 8;
  /// A reduced box must still have this multiple of the wanted rows and columns. Larger than 1
  /// keeps more of the resampling filter's quality (Pillow's reducing_gap).
  double gap = 1.0;
  Damaged damaged = Damaged::kRaise;
  int64_t most_pixels = Image::kMostPixels;       ///< most pixels of the whole picture
  int64_t most_working_bytes = int64_t{2} << 30;  ///< as in DecodeOptions
  Entropy entropy = Entropy::kOwn;
};

/// A box with edges between pixels: pixel i covers [i, i + 1).
struct Window {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
  bool operator==(const Window&) const = default;
};

/// A part of a JPEG as interleaved pixels, in memory of the decoder.
struct RegionView {
  const uint8_t* pixels = nullptr;  ///< first pixel of the first row
  size_t row_bytes = 0;             ///< from one row to the next
  Size size{};
  /// The wanted box, relative to these pixels, which are all that it touches.
  Window window{};
  Order order = Order::kRgb;  ///< kGray or kRgb
  int reduction = 1;          ///< 1, 2, 4 or 8: full pixels per pixel of these, in both directions
};

/// An image, and the position of the wanted box in it.
struct JpegRegion {
  Image pixels{};
  Window window{};
  int reduction = 1;
};

/// Decodes boxes of JPEGs, one picture after the other, and keeps its memory.
///
///     JpegRegionDecoder decoder;                       // one per thread
///     Size size = decoder.open(bytes, name).size;
///     Box box = random_crop(size);
///     RegionView rgb = decoder.decode(box, {224, 224});   // resample rgb.window
///
/// It reads rows above the box and columns beside it, but does not transform them. It does not read
/// rows below. The scale is the largest reduction in the DCT domain (1/2, 1/4, 1/8) that leaves the
/// box at least options.gap times the wanted size in both directions, as Pillow's draft() does.
///
/// Pixels are bit-equal to the same part of the whole picture, decoded at that scale by libjpeg
/// with its defaults (accurate inverse DCT, interpolated chroma), also at the box's borders.
///
/// Not thread-safe: each thread needs its own. Each open() serves one decode.
/// Lifetime: `bytes` must live until the decode after open() returns; a view lives until the next
/// call of any member.
/// Errors: DataError "image.jpeg" with name; UsageError for a box outside the picture, and for
/// decode without open. After an error the decoder is ready for the next open().
class JpegRegionDecoder final {
 public:
  explicit JpegRegionDecoder(const JpegRegionOptions& options = {});
  ~JpegRegionDecoder();
  JpegRegionDecoder(const JpegRegionDecoder&) = delete;
  JpegRegionDecoder& operator=(const JpegRegionDecoder&) = delete;
  JpegRegionDecoder(JpegRegionDecoder&&) noexcept;
  JpegRegionDecoder& operator=(JpegRegionDecoder&&) noexcept;

  /// Reads the header.
  ImageInfo open(std::span<const uint8_t> bytes, std::string_view name = {});

  /// Returns RGB, or gray for a gray picture.
  [[nodiscard]] RegionView decode(const Box& box, Size wanted);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Decodes one picture into an image of its own.
[[nodiscard]] JpegRegion decode_region(std::span<const uint8_t> bytes,
                                       const Box& box,
                                       Size wanted,
                                       const JpegRegionOptions& options = {},
                                       std::string_view name = {});

/// Returns the reduction that decode() chooses: 1, 2, 4 or 8, at most options.largest_reduction.
[[nodiscard]] int choose_reduction(const Box& box,
                                   Size wanted,
                                   const JpegRegionOptions& options = {});

}  // namespace argosy::image
