#pragma once

#include "argosy/image/image.h"

/// What becomes of a pixel by its own color, and colors of another kind.
///
/// u8: Pillow 13's arithmetic, bit for bit. f32 means 0 to 1: torchvision 0.29's arithmetic of
/// tensors (its operations in f32, in its order). BGR is taken for what it is; the alpha of RGBA
/// stays as it is. All return a new image. Errors: UsageError for an empty image, besides those
/// named.
namespace argosy::image {

// ---- between an image and a duller one of itself: 0 is the dull one, 1 the image, 2 twice as far
// ----

/// Dull: black. Errors: UsageError for a factor below 0 or not a number; so for the next two.
[[nodiscard]] Image adjust_brightness(const Image& image, double factor);
/// Dull: the image's mean gray.
[[nodiscard]] Image adjust_contrast(const Image& image, double factor);
/// Dull: the image in gray. A gray image stays as it is.
[[nodiscard]] Image adjust_saturation(const Image& image, double factor);

/// Turns the hue by `shift` of a full circle; a gray image stays as it is.
/// u8: by way of 8 bits for hue and saturation, as in Pillow's mode HSV: also a shift of 0 changes
/// bits. Errors: UsageError for a shift outside of -0.5 to 0.5.
[[nodiscard]] Image adjust_hue(const Image& image, double shift);

// ---- one value at a time ----

/// gain × value^gamma, of values from 0 to 1. Errors: UsageError for a gamma below 0.
[[nodiscard]] Image adjust_gamma(const Image& image, double gamma, double gain = 1);
/// The negative: 255 - value, 1 - value.
[[nodiscard]] Image invert(const Image& image);
/// Keeps the `bits` highest of 8. Errors: UsageError for f32, and for bits outside of 1 to 8.
[[nodiscard]] Image posterize(const Image& image, int bits);
/// Inverts values from `threshold` on (u8: 0 to 255; f32: 0 to 1).
/// Errors: UsageError for f32 and a threshold above 1, which is one of u8 and would change nothing.
[[nodiscard]] Image solarize(const Image& image, double threshold);

// ---- by what values there are in a channel ----

/// Stretches each channel: its least value becomes 0, its greatest 255 (1).
[[nodiscard]] Image autocontrast(const Image& image);
/// Spreads each channel so that all values become about as frequent. Errors: UsageError for f32.
[[nodiscard]] Image equalize(const Image& image);

// ---- other kinds ----

/// Gray by the weights of ITU-R 601-2. channels 1: a gray image; 3: gray in each channel, BGR for a
/// BGR image, else RGB. u8: in 16 bits, rounded; f32: 0.2989 R + 0.587 G + 0.114 B.
/// Errors: UsageError for other numbers of channels.
[[nodiscard]] Image to_grayscale(const Image& image, int channels = 1);

/// The same picture with other channels: gray repeated, colors weighed to gray as above or
/// exchanged, alpha dropped or made opaque (255, 1).
[[nodiscard]] Image convert(const Image& image, Order order);

/// What 255 of u8 is in f32.
enum class Scale : uint8_t {
  kUnit,  ///< 1, as in ToTensor
  kNone   ///< 255
};

/// As f32; an f32 image stays as it is.
[[nodiscard]] Image to_f32(const Image& image, Scale scale = Scale::kUnit);
/// As u8; a u8 image stays as it is. Values outside become 0 or 255, NaN 0. kUnit: value × 255.999,
/// cut, as torchvision's convert_image_dtype; it undoes to_f32(). kNone: rounded, halves to even.
[[nodiscard]] Image to_u8(const Image& image, Scale scale = Scale::kUnit);

}  // namespace argosy::image
