#pragma once

#include <cstdint>

#include "argosy/vision/ops/norm_kernels.h"

// Internal to the room. Loops over images of f32 or bf16 whose channels lie side by side (H, W, C).
namespace argosy::vision::kernels {

/// Places in a window are numbered row by row, 0 … 3; kNowhere means that relu passes none.
inline constexpr int32_t kNowhere = 4;

/// y = max(0, the largest x·scale + offset of each window). Also writes its place in the window and
/// the x there.
void norm_pool_relu(Pixels x,
                    const ImageShape& image,
                    const float* scale,
                    const float* offset,
                    PixelsToWrite y,
                    PixelsToWrite chosen,
                    int32_t* where);

/// Adds, per channel, the sums of dy and of dy times the normalized x where relu passes them.
void add_gradient_sums(Pixels dy,
                       Pixels chosen,
                       const int32_t* where,
                       const ImageShape& image,
                       const float* mean,
                       const float* inverse_std,
                       double* sums,
                       double* products);

/// dx = slope·(x - mean) + level, plus scale·dy at the chosen place.
void spread_gradient(Pixels x,
                     Pixels dy,
                     const int32_t* where,
                     const ImageShape& image,
                     const float* mean,
                     const float* scale,
                     const float* slope,
                     const float* level,
                     PixelsToWrite dx);

}  // namespace argosy::vision::kernels
