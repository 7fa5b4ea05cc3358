#pragma once

#include <cstdint>

#include "argosy/transport/types.h"

namespace argosy::transport {

/// What is combined, and in which order: the terms are put on a stack in turn, and after the i-th
/// one the two highest are combined merges[i] times (see LeafDeal::Sum).
struct Terms {
  const void* const* data = nullptr;
  const uint8_t* merges = nullptr;
  int count = 0;        ///< of the terms, at least 1
  int64_t divisor = 1;  ///< of kAvg
};
/// The most that may wait on the stack at a time.
inline constexpr int kMostWaiting = 16;

/// Computes destination[i] of element i of all terms, for i < count.
///
/// All transports add here, in the order that a LeafDeal says, so all give the same bits. The rules
/// are the same on every machine and vector width:
/// - f32 and f64 are combined in their own precision, without contraction; f16 and bf16 in f32,
///   rounded to nearest even once at the end.
/// - Integers wrap (two's complement). kAvg of i8, u8 and i32 adds in 64 bits, so the average never
///   wraps; it truncates toward zero. kAvg of floats divides once, before the rounding.
/// - kMin and kMax: a NaN of any term wins; of equal values (-0.0 and 0.0) the later one.
/// - Bool: any byte but 0 is true, and results are 0 or 1.
///
/// `destination` may be one of the terms; otherwise they do not overlap. No alignment is needed.
/// Errors: UsageError when `op` is not defined for `dtype`.
/// Cost: each term is read once and the destination written once, a block that fits the cache
/// at a time; vectorised for AVX2 and AVX-512 where the processor has them.
void reduce(const Terms& terms, void* destination, int64_t count, DType dtype, ReduceOp op);

/// Convert one number between 16 bits and f32. They round to nearest, ties to even. NaN stays NaN,
/// numbers that are too large become infinite, and denormals are kept.
[[nodiscard]] float f16_to_f32(uint16_t bits);
[[nodiscard]] uint16_t f32_to_f16(float value);
[[nodiscard]] float bf16_to_f32(uint16_t bits);
[[nodiscard]] uint16_t f32_to_bf16(float value);

/// Returns the instruction set that reduce() uses here: "avx512", "avx2" or "baseline".
[[nodiscard]] const char* reduce_instruction_set();

}  // namespace argosy::transport
