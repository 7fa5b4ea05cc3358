#pragma once

#include <cstdint>
#include <span>

#include "argosy/transport/types.h"

namespace argosy::transport {

/// Computes destination[i] = op over sources[0][i], sources[1][i], … in this order, for i < count.
///
/// All transports add here, and they pass the ranks' data in rank order, so all give the same bits.
/// The rules are the same on every machine and vector width:
/// - f32 and f64 are folded one source after the other in their own precision, without
///   contraction; f16 and bf16 in f32, rounded to nearest even once at the end.
/// - Integers wrap (two's complement). kAvg of i8, u8 and i32 adds in 64 bits, so the average never
///   wraps; it truncates toward zero. kAvg of floats divides once, before the rounding.
/// - kMin and kMax: a NaN of any source wins; of equal values (-0.0 and 0.0) the later one.
/// - Bool: any byte but 0 is true, and results are 0 or 1.
///
/// `destination` may be one of the sources; otherwise they do not overlap. No alignment is needed.
/// Errors: UsageError when `op` is not defined for `dtype`.
/// Cost: each source is read once and the destination written once, a block that fits the cache
/// at a time; vectorised for AVX2 and AVX-512 where the processor has them.
void reduce(std::span<const void* const> sources,
            void* destination,
            int64_t count,
            DType dtype,
            ReduceOp op);

/// Convert one number between 16 bits and f32. They round to nearest, ties to even. NaN stays NaN,
/// numbers that are too large become infinite, and denormals are kept.
[[nodiscard]] float f16_to_f32(uint16_t bits);
[[nodiscard]] uint16_t f32_to_f16(float value);
[[nodiscard]] float bf16_to_f32(uint16_t bits);
[[nodiscard]] uint16_t f32_to_bf16(float value);

/// Returns the instruction set that reduce() uses here: "avx512", "avx2" or "baseline".
[[nodiscard]] const char* reduce_instruction_set();

}  // namespace argosy::transport
