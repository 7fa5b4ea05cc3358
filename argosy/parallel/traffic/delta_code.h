#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

// Internal to the room: numbers in fewer bits.
namespace argosy::parallel::traffic {

/// Returns the code of a flat f32 tensor as bytes: for each block of values the largest absolute
/// one, f32, and then for each value a signed whole number of 8 or 4 bits, rounded to the nearest,
/// in units of a 127th or a 7th of that. Blocks have 256 values in 8 bits and 64 in 4.
/// Error: at most half a unit. A block with a value that is not finite becomes NaN.
[[nodiscard]] at::Tensor encode_delta(const at::Tensor& values, int bits);

/// Adds the values of a code to a flat f32 tensor on the CPU.
void add_decoded(const at::Tensor& code, int bits, const at::Tensor& sum);

/// Returns the bytes of a code for so many values.
[[nodiscard]] int64_t code_bytes(int64_t values, int bits);

}  // namespace argosy::parallel::traffic
