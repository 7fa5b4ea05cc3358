#pragma once

#include <cstddef>

#include "argosy/optim/kernels/squares.h"

namespace argosy::optim::kernels {

/// Returns the sum of squares, in double; see kSquaresBlock.
[[nodiscard]] ExactSum sum_of_squares(const float* data, std::size_t count);
[[nodiscard]] ExactSum sum_of_squares(const double* data, std::size_t count);

/// Returns the largest absolute value: NaN if there is a NaN, 0 for no elements.
[[nodiscard]] double max_abs(const float* data, std::size_t count);
[[nodiscard]] double max_abs(const double* data, std::size_t count);

/// True if no element is NaN or infinite.
[[nodiscard]] bool all_finite(const float* data, std::size_t count);
[[nodiscard]] bool all_finite(const double* data, std::size_t count);

/// data *= factor.
void scale(float* data, std::size_t count, double factor);
void scale(double* data, std::size_t count, double factor);

/// Computes data *= factor and returns true if some element was not finite before.
[[nodiscard]] bool unscale(float* data, std::size_t count, float factor);
[[nodiscard]] bool unscale(double* data, std::size_t count, float factor);

/// Limits elements to [low, high]; NaN stays.
void clamp(float* data, std::size_t count, double low, double high);
void clamp(double* data, std::size_t count, double low, double high);

}  // namespace argosy::optim::kernels
