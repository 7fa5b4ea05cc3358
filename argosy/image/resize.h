#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "argosy/image/image.h"

namespace argosy::image {

/// How new pixels are made of old ones. The names are Pillow's and Paddle's. kNearest takes the
/// pixel under the centre of the new one (torch's "nearest-exact"); torch's "nearest" and OpenCV's
/// take the one under its upper left corner. kBox, kHamming and kLanczos need Antialias::kOn.
enum class Interpolation : uint8_t { kNearest, kBilinear, kBicubic, kBox, kHamming, kLanczos };
[[nodiscard]] std::string_view to_string(
    Interpolation interpolation);  ///< "nearest", "bilinear", …

/// kOn: when the picture shrinks, every old pixel has a share in the new ones (Pillow; torch's
/// antialias=True). kOff: two neighbours per axis (bicubic: four), however much it shrinks (torch's
/// antialias=False, OpenCV). When it grows, both are the same, except that the cubic's parameter is
/// -0.5 with kOn (Pillow) and -0.75 with kOff (torch, OpenCV). For kNearest there is no difference.
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

/// Returns the image in another size.
///
///     Image small = resize(photo, {.height = 224, .width = 224});
///
/// u8: sums are in fixed point of 22 bits, rows first, rounded to 8 bits between the two passes.
/// The colors of RGBA are weighed by alpha, and divided by it afterwards. The result is bit-equal
/// to Pillow 13's Image.resize with kOn, and within 1 of torch's interpolate with kOff
/// (docs/reference/transforms_exactness.md). f32: sums are in f64, channel by channel, and each bit
/// equals Pillow's of mode F.
/// Errors: UsageError for an empty image, a size below 1, kOff with kBox, kHamming or kLanczos.
/// Cost: 380 × 380 × 3 u8 to 224 × 224, kBilinear: about 0.1 ms (Pillow 0.9 ms) with AVX-512 VNNI.
/// Source: Pillow, libImaging/Resample.c; torch 2.15, native/UpSample.h.
[[nodiscard]] Image resize(const Image& image, Size size, const ResizeOptions& options = {});

/// Returns a box of the image in another size. Pixels of the image beside the box have a share in
/// the outermost new ones, as in Pillow's resize(box=). Crop first to avoid that.
/// Errors: as for resize(); also UsageError for a box that is empty or not inside the image.
[[nodiscard]] Image resize(const Image& image,
                           const BoxF& source,
                           Size size,
                           const ResizeOptions& options = {});

/// Returns the image, or a smaller one with its proportions whose sides are at most `most`.
/// Errors: UsageError for an empty image, and for `most` below 1.
[[nodiscard]] Image shrunk(const Image& image, int most);

/// Whether left and right are exchanged.
enum class Flip : uint8_t { kOff, kHorizontal };

struct ResamplerOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  Antialias antialias = Antialias::kOn;
  Flip flip = Flip::kOff;  ///< flips the result; costs nothing
  /// Rows and columns of the target to make. The bits are those of a crop() of the whole, for the
  /// price of the part. nullopt: all.
  std::optional<Box> part{};
};

/// Resizes u8 pixels row by row like resize(). It is for a pipeline that does more with each row
/// while it is in the cache. It keeps its memory for the next picture.
///
///     Resampler resampler({rows, columns}, {0, 0, 380, 380}, {224, 224}, 3,
///                         {.flip = Flip::kHorizontal});
///     resampler.start(pixels, row_bytes);
///     for (int y = 0; y < 224; ++y) {
///       resampler.next(row);  // 224 × 3 bytes: the bits of resize(), flipped
///       normalize(row, …);
///     }
///
/// It takes 1 to 4 channels and treats all alike: alpha weighs nothing here. Use it from one thread
/// at a time. Call plan() again on an object that was moved from.
class Resampler final {
 public:
  Resampler();  ///< call plan() before anything else
  /// Calls plan().
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

  /// Computes the weights for pictures of `source` pixels. Keeps its memory.
  /// Errors: UsageError as resize(), for channels outside 1 to 4, and for a part that is empty or
  /// reaches out of the target.
  void plan(Size source,
            const BoxF& box,
            Size target,
            int channels,
            const ResamplerOptions& options = {});

  /// The source rows and columns [begin, end) that are read. A decoder may leave out the others.
  struct Range {
    int begin = 0;
    int end = 0;
    bool operator==(const Range&) const = default;
  };
  [[nodiscard]] Range rows() const;
  [[nodiscard]] Range columns() const;
  /// Returns the end of the source rows, from rows().begin, that must be there before next() makes
  /// row y.
  [[nodiscard]] int rows_needed(int y) const;

  /// Begins with the first row of a picture. `pixels` is row 0 of the source, and rows lie
  /// `row_bytes` apart. Nothing outside them is read.
  /// Lifetime: `pixels` must stay until the last next().
  void start(const uint8_t* pixels, size_t row_bytes);
  /// Makes the next row: target.width × channels bytes, or the part's width.
  /// Errors: UsageError when all rows were made, or without start().
  void next(uint8_t* row);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::image
