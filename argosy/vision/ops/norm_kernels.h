#pragma once

#include <cstdint>

#include "argosy/vision/ops/pixels.h"

// Internal to the room. Loops over images of f32 or bf16 whose channels lie side by side (H, W, C).
// They compute in f32.
namespace argosy::vision::kernels {

struct ImageShape {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  [[nodiscard]] int64_t elements() const { return height * width * channels; }
  /// Elements after pooling by 2×2 windows, which leave out an odd last row or column.
  [[nodiscard]] int64_t pooled() const { return (height / 2) * (width / 2) * channels; }
};

/// Adds, per channel, the sums of (x - shift) and of its square to `sums` and `squares`.
void add_moments(
    Pixels x, const ImageShape& image, const float* shift, double* sums, double* squares);

/// y = max(0, x·scale + offset + residual); `residual` need not exist.
void norm_relu(Pixels x,
               Pixels residual,
               const ImageShape& image,
               const float* scale,
               const float* offset,
               PixelsToWrite y);

/// Adds, per channel, the sums of dy and of dy times the normalized x where relu passes them: where
/// y is positive or, without a `y`, where x·scale + offset is. Writes that part of dy to `passed`
/// if it exists.
void add_relu_gradient_sums(Pixels dy,
                            Pixels x,
                            Pixels y,
                            const ImageShape& image,
                            const float* mean,
                            const float* inverse_std,
                            const float* scale,
                            const float* offset,
                            PixelsToWrite passed,
                            double* sums,
                            double* products);

/// dx = slope·(x - mean) + level + scale·dy. The last term counts only where x·scale + offset is
/// positive, or everywhere if `offset` is null.
void norm_relu_gradient(Pixels dy,
                        Pixels x,
                        const ImageShape& image,
                        const float* mean,
                        const float* scale,
                        const float* offset,
                        const float* slope,
                        const float* level,
                        PixelsToWrite dx);

}  // namespace argosy::vision::kernels
