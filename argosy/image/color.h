#pragma once

#include "argosy/image/image.h"

/// Changes the color of each pixel, and converts between kinds of colors.
///
/// For u8 the arithmetic is Pillow 13's, bit for bit. f32 means 0 to 1, and the arithmetic is that
/// of torchvision 0.29 on tensors (its operations in f32, in its order). BGR is handled as BGR; the
/// alpha of RGBA stays as it is. All functions return a new image.
/// Errors: UsageError for an empty image, and those named below.
namespace argosy::image {

// ---- between an image and a duller one of itself: 0 is the dull one, 1 the image, 2 twice as far
// ----

/// The dull image is black. Errors: UsageError for a factor that is below 0 or not a number; the
/// same for the next two.
[[nodiscard]] Image adjust_brightness(const Image& image, double factor);
/// The dull image is the image's mean gray.
[[nodiscard]] Image adjust_contrast(const Image& image, double factor);
/// The dull image is the image in gray. A gray image stays as it is.
[[nodiscard]] Image adjust_saturation(const Image& image, double factor);

/// Turns the hue by `shift` of a full circle; a gray image stays as it is. For u8, hue and
/// saturation have 8 bits, as in Pillow's mode HSV, so even a shift of 0 changes bits. Errors:
/// UsageError for a shift outside -0.5 to 0.5.
[[nodiscard]] Image adjust_hue(const Image& image, double shift);

// ---- one value at a time ----

/// Computes gain × value^gamma on values from 0 to 1. Errors: UsageError for a gamma below 0.
[[nodiscard]] Image adjust_gamma(const Image& image, double gamma, double gain = 1);
/// Returns the negative: 255 - value, or 1 - value.
[[nodiscard]] Image invert(const Image& image);
/// Keeps the `bits` highest of 8 bits. Errors: UsageError for f32, and for bits outside 1 to 8.
[[nodiscard]] Image posterize(const Image& image, int bits);
/// Inverts values that are at least `threshold` (u8: 0 to 255; f32: 0 to 1).
/// Errors: UsageError for f32 with a threshold above 1, which is meant for u8 and would change
/// nothing.
[[nodiscard]] Image solarize(const Image& image, double threshold);

// ---- by what values there are in a channel ----

/// Stretches each channel: its least value becomes 0, its greatest 255 (1).
[[nodiscard]] Image autocontrast(const Image& image);
/// Spreads each channel so that all values become about as frequent. Errors: UsageError for f32.
[[nodiscard]] Image equalize(const Image& image);

// ---- other kinds ----

/// Converts to gray by the weights of ITU-R 601-2. channels 1: a gray image; 3: gray in each
/// channel, BGR for a BGR image, else RGB. u8 is computed in 16 bits and rounded; f32 is 0.2989 R +
/// 0.587 G + 0.114 B.
/// Errors: UsageError for other numbers of channels.
[[nodiscard]] Image to_grayscale(const Image& image, int channels = 1);

/// Returns the picture with other channels. Gray is repeated, colors are weighed to gray as above
/// or exchanged, alpha is dropped or made opaque (255, 1).
[[nodiscard]] Image convert(const Image& image, Order order);

/// The value in f32 that equals 255 in u8.
enum class Scale : uint8_t {
  kUnit,  ///< 1, as in ToTensor
  kNone   ///< 255
};

/// Converts to f32. An f32 image stays as it is.
[[nodiscard]] Image to_f32(const Image& image, Scale scale = Scale::kUnit);
/// Converts to u8. A u8 image stays as it is. Values outside the range become 0 or 255, and NaN
/// becomes 0. kUnit: value × 255.999, cut, as in torchvision's convert_image_dtype; it undoes
/// to_f32(). kNone: rounded, halves to even.
[[nodiscard]] Image to_u8(const Image& image, Scale scale = Scale::kUnit);

}  // namespace argosy::image
