#pragma once

#include <cstdint>

// Internal to the room. Plain loops over f32 images whose channels lie side by side (H, W, C).
namespace argosy::vision::kernels {

struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  [[nodiscard]] int64_t elements() const { return height * width * channels; }
  /// Of 2×2 windows; an odd last row or column belongs to none.
  [[nodiscard]] int64_t pooled() const { return (height / 2) * (width / 2) * channels; }
};

/// A place in a window, row by row: 0 … 3; kNowhere: relu lets nothing through.
inline constexpr int32_t kNowhere = 4;

/// Adds for each channel the sums of (x - shift) and of its square to `sums` and `squares`.
void add_moments(
    const float* x, const Image& image, const float* shift, double* sums, double* squares);

/// y = max(0, the largest x·scale + offset of each window), where it was, and the x there.
void norm_pool_relu(const float* x,
                    const Image& image,
                    const float* scale,
                    const float* offset,
                    float* y,
                    float* chosen,
                    int32_t* where);

/// Adds for each channel the sums of dy, and of dy times the normalised x, where relu let it
/// through.
void add_gradient_sums(const float* dy,
                       const float* chosen,
                       const int32_t* where,
                       const Image& image,
                       const float* mean,
                       const float* inverse_std,
                       double* sums,
                       double* products);

/// dx = slope·(x - mean) + level, plus scale·dy at the place that was chosen.
void spread_gradient(const float* x,
                     const float* dy,
                     const int32_t* where,
                     const Image& image,
                     const float* mean,
                     const float* scale,
                     const float* slope,
                     const float* level,
                     float* dx);

}  // namespace argosy::vision::kernels
