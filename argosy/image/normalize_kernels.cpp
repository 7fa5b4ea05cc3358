#include "argosy/image/normalize_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "argosy/base/simd.h"

namespace argosy::image::kernels {
namespace {

ARGOSY_KERNEL_INLINE float quotient(float value, float divisor, float inverse) {
  const float near = value * inverse;
  return __builtin_fmaf(__builtin_fmaf(-divisor, near, value), inverse, near);
}

ARGOSY_KERNEL_INLINE float one_of(uint8_t value, const NormalizeRun& run, size_t i) {
  const float scaled = quotient(static_cast<float>(value), run.divisor, run.divisor_inverse);
  return quotient(scaled - run.mean[i], run.std[i], run.std_inverse[i]);
}

#if defined(__x86_64__)
// The same in registers of 16 and of 8 values, whose constants stay there.

#define ARGOSY_512 __attribute__((target("avx512f,fma")))
#define ARGOSY_256 __attribute__((target("avx2,fma")))

ARGOSY_512 ARGOSY_KERNEL_INLINE __m512 quotient(__m512 value, __m512 divisor, __m512 inverse) {
  const __m512 near = _mm512_mul_ps(value, inverse);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(divisor, near, value), inverse, near);
}
ARGOSY_256 ARGOSY_KERNEL_INLINE __m256 quotient(__m256 value, __m256 divisor, __m256 inverse) {
  const __m256 near = _mm256_mul_ps(value, inverse);
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(divisor, near, value), inverse, near);
}

ARGOSY_512 size_t normalize_512(const uint8_t* values,
                                size_t count,
                                const NormalizeRun& run,
                                float* out) {
  constexpr size_t kWide = 16;
  constexpr size_t kParts = kNormalizeRun / kWide;
  const __m512 divisor = _mm512_set1_ps(run.divisor);
  const __m512 inverse = _mm512_set1_ps(run.divisor_inverse);
  __m512 mean[kParts], std[kParts], std_inverse[kParts];
  for (size_t k = 0; k < kParts; ++k) {
    mean[k] = _mm512_loadu_ps(run.mean + k * kWide);
    std[k] = _mm512_loadu_ps(run.std + k * kWide);
    std_inverse[k] = _mm512_loadu_ps(run.std_inverse + k * kWide);
  }
  size_t i = 0;
  for (; i + kNormalizeRun <= count; i += kNormalizeRun) {
    for (size_t k = 0; k < kParts; ++k) {
      const size_t at = i + k * kWide;
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + at));
      const __m512 value = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
      const __m512 centred = _mm512_sub_ps(quotient(value, divisor, inverse), mean[k]);
      _mm512_storeu_ps(out + at, quotient(centred, std[k], std_inverse[k]));
    }
  }
  return i;
}

ARGOSY_256 size_t normalize_256(const uint8_t* values,
                                size_t count,
                                const NormalizeRun& run,
                                float* out) {
  constexpr size_t kWide = 8;
  const __m256 divisor = _mm256_set1_ps(run.divisor);
  const __m256 inverse = _mm256_set1_ps(run.divisor_inverse);
  size_t i = 0;
  for (; i + kNormalizeRun <= count; i += kNormalizeRun) {
    for (size_t k = 0; k < kNormalizeRun; k += kWide) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values + i + k));
      const __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
      const __m256 centred =
          _mm256_sub_ps(quotient(value, divisor, inverse), _mm256_loadu_ps(run.mean + k));
      const __m256 std = _mm256_loadu_ps(run.std + k);
      const __m256 std_inverse = _mm256_loadu_ps(run.std_inverse + k);
      _mm256_storeu_ps(out + i + k, quotient(centred, std, std_inverse));
    }
  }
  return i;
}

/// The values that no run is left for.
ARGOSY_256 void normalize_rest(
    const uint8_t* values, size_t begin, size_t end, const NormalizeRun& run, float* out) {
  for (size_t i = begin; i < end; ++i) {
    out[i] = one_of(values[i], run, i - begin);
  }
}
#endif

}  // namespace

bool can_normalize() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx2") != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

void normalize(const uint8_t* values, size_t count, const NormalizeRun& run, float* out) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx512f") != 0;
  const size_t done =
      wide ? normalize_512(values, count, run, out) : normalize_256(values, count, run, out);
  normalize_rest(values, done, count, run, out);
#else
  for (size_t i = 0; i < count; ++i) {
    out[i] = one_of(values[i], run, i % kNormalizeRun);
  }
#endif
}

ARGOSY_KERNEL void split_channels(const uint8_t* pixels,
                                  size_t width,
                                  uint8_t* planes,
                                  size_t stride) {
  for (size_t x = 0; x < width; ++x) {
    planes[x] = pixels[3 * x];
    planes[stride + x] = pixels[3 * x + 1];
    planes[2 * stride + x] = pixels[3 * x + 2];
  }
}

}  // namespace argosy::image::kernels
