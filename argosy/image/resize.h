#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "argosy/image/image.h"

namespace argosy::image {

/// How new pixels are made of old ones; the names are Pillow's and Paddle's. kNearest takes the
/// pixel under the centre of the new one (torch's "nearest-exact"; torch's "nearest" and OpenCV's
/// take the one under its left upper corner). kBox, kHamming and kLanczos need Antialias::kOn.
enum class Interpolation : uint8_t { kNearest, kBilinear, kBicubic, kBox, kHamming, kLanczos };
[[nodiscard]] std::string_view to_string(
    Interpolation interpolation);  ///< "nearest", "bilinear", …

/// kOn: where the picture shrinks, every old pixel has its share in the new ones (Pillow; torch's
/// antialias=True). kOff: two neighbours per axis (bicubic: four), however much it shrinks
/// (torch's antialias=False, OpenCV). The same where it grows, but for the cubic: its parameter is
/// -0.5 with kOn (Pillow), -0.75 with kOff (torch, OpenCV). kNearest knows no difference.
enum class Antialias : uint8_t { kOff, kOn };

/// A box of an image in fractions of pixels: pixel (0, 0) covers [0, 1) × [0, 1).
struct BoxF {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
  bool operator==(const BoxF&) const = default;
};

struct ResizeOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  Antialias antialias = Antialias::kOn;
};

/// The image in another size.
///
///     Image small = resize(photo, {.height = 224, .width = 224});
///
/// u8: sums in fixed point of 22 bits, rows first, rounded to 8 bits between the two passes; RGBA
/// with its colors weighed by alpha, and divided by it afterwards. Bit-equal to Pillow 13's
/// Image.resize with kOn; with kOff within 1 of torch's interpolate (docs/reference/
/// transforms_exactness.md). f32: sums in f64, channel by channel, each bit Pillow's of mode F.
/// Errors: UsageError for an empty image, a size below 1, kOff with kBox, kHamming or kLanczos.
/// Cost: 380 × 380 × 3 u8 to 224 × 224, kBilinear: about 0.1 ms (Pillow 0.9 ms) with AVX-512 VNNI.
/// Source: Pillow, libImaging/Resample.c; torch 2.15, native/UpSample.h.
[[nodiscard]] Image resize(const Image& image, Size size, const ResizeOptions& options = {});

/// The same of a box of the image. Pixels beside the box, but in the image, have their share in the
/// outermost new ones, as in Pillow's resize(box=); crop first if they shall not.
/// Errors: also UsageError for a box that is empty or not inside the image.
[[nodiscard]] Image resize(const Image& image,
                           const BoxF& source,
                           Size size,
                           const ResizeOptions& options = {});

/// The image, or a smaller one in its proportions whose sides are at most `most`.
/// Errors: UsageError for an empty image, and for `most` below 1.
[[nodiscard]] Image shrunk(const Image& image, int most);

/// Left and right exchanged, or not.
enum class Flip : uint8_t { kOff, kHorizontal };

struct ResamplerOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  Antialias antialias = Antialias::kOn;
  Flip flip = Flip::kOff;  ///< of what is made; costs nothing
  /// Rows and columns of the target that are made: the bits of a crop() of the whole, for the price
  /// of the part. None: all.
  std::optional<Box> part{};
};

/// resize() of u8 pixels row by row: for a pipeline which does more with each row while it is in
/// the cache, and which keeps the memory for the next picture.
///
///     Resampler resampler({rows, columns}, {0, 0, 380, 380}, {224, 224}, 3,
///                         {.flip = Flip::kHorizontal});
///     resampler.start(pixels, row_bytes);
///     for (int y = 0; y < 224; ++y) {
///       resampler.next(row);  // 224 × 3 bytes: the bits of resize(), flipped
///       normalize(row, …);
///     }
///
/// Any number of channels from 1 to 4, taken as they are: alpha weighs nothing here.
/// One thread at a time. Moved from: plan() it again.
class Resampler final {
 public:
  Resampler();  ///< plan() before anything else
  /// As plan().
  Resampler(Size source,
            const BoxF& box,
            Size target,
            int channels,
            const ResamplerOptions& options = {});
  Resampler(Resampler&&) noexcept;
  Resampler& operator=(Resampler&&) noexcept;
  Resampler(const Resampler&) = delete;
  Resampler& operator=(const Resampler&) = delete;
  ~Resampler();

  /// Computes the weights for pictures of `source` pixels, keeping what memory there is.
  /// Errors: UsageError as resize(), for channels outside 1 to 4, and for a part that is empty or
  /// reaches out of the target.
  void plan(Size source,
            const BoxF& box,
            Size target,
            int channels,
            const ResamplerOptions& options = {});

  /// Source rows and columns [begin, end) that are read at all: a decoder may leave out the rest.
  struct Range {
    int begin = 0;
    int end = 0;
    bool operator==(const Range&) const = default;
  };
  [[nodiscard]] Range rows() const;
  [[nodiscard]] Range columns() const;
  /// Source rows [rows().begin, this) must be there before next() makes row y.
  [[nodiscard]] int rows_needed(int y) const;

  /// Begins with the first row of a picture. `pixels` is row 0 of the source, rows lie `row_bytes`
  /// apart; nothing outside of them is read.
  /// Lifetime: `pixels` must stay until the last next().
  void start(const uint8_t* pixels, size_t row_bytes);
  /// Makes the next row: target.width × channels bytes, or the part's.
  /// Errors: UsageError when all rows were made, or without start().
  void next(uint8_t* row);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::image
