#include "argosy/image/codecs/inverse_dct.h"

#include "argosy/base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace argosy::image::codecs {

QuantaPair pair_of(const JQUANT_TBL& a, const JQUANT_TBL& b) {
  QuantaPair pair;
  for (size_t i = 0; i < DCTSIZE2; ++i) {
    pair.rows[i / 8][i % 8] = static_cast<int16_t>(a.quantval[i]);
    pair.rows[i / 8][i % 8 + 8] = static_cast<int16_t>(b.quantval[i]);
  }
  return pair;
}

#if defined(__x86_64__)

namespace {

#define ARGOSY_AVX2 __attribute__((target("avx2"), always_inline)) inline

struct Rows {  // of both blocks: 16 numbers of 16 bits each
  __m256i row[8];
  __m256i& operator[](size_t i) { return row[i]; }
};

/// Constants of the transform in 13 bits after the point, for pmaddwd: first·a + second·b.
ARGOSY_AVX2 __m256i weights(int first, int second) {
  return _mm256_set1_epi32((second << 16) | (first & 0xffff));
}

struct Wide {  // 16 numbers of 32 bits: columns 0…3 and 4…7 of both blocks
  __m256i low;
  __m256i high;
};

ARGOSY_AVX2 Wide interleave(__m256i a, __m256i b) {
  return {_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}
ARGOSY_AVX2 Wide weigh(Wide pairs, __m256i by) {
  return {_mm256_madd_epi16(pairs.low, by), _mm256_madd_epi16(pairs.high, by)};
}
ARGOSY_AVX2 Wide add(Wide a, Wide b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
ARGOSY_AVX2 Wide subtract(Wide a, Wide b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}
template <int kShift>
ARGOSY_AVX2 __m256i shrink(Wide a) {
  return _mm256_packs_epi32(_mm256_srai_epi32(a.low, kShift), _mm256_srai_epi32(a.high, kShift));
}

/// One pass over columns; rows[i] becomes the i-th output row, kShift bits fewer, rounded.
template <int kShift>
ARGOSY_AVX2 void pass(Rows& rows) {
  const Wide outer = interleave(rows[0], rows[4]);
  const Wide inner = interleave(rows[2], rows[6]);
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  const Wide rounding{half, half};
  const Wide sum = add(weigh(outer, weights(8192, 8192)), rounding);
  const Wide difference = add(weigh(outer, weights(8192, -8192)), rounding);
  const Wide inner_sum = weigh(inner, weights(10703, 4433));
  const Wide inner_difference = weigh(inner, weights(4433, -10704));
  const Wide even[] = {add(sum, inner_sum),
                       add(difference, inner_difference),
                       subtract(difference, inner_difference),
                       subtract(sum, inner_sum)};
  const Wide far = interleave(rows[1], rows[7]);
  const Wide near = interleave(rows[3], rows[5]);
  const Wide odd[] = {add(weigh(far, weights(11363, 2260)), weigh(near, weights(9633, 6437))),
                      add(weigh(far, weights(9633, -6436)), weigh(near, weights(-2259, -11362))),
                      add(weigh(far, weights(6437, 9633)), weigh(near, weights(-11362, 2261))),
                      add(weigh(far, weights(2260, -11363)), weigh(near, weights(-6436, 9633)))};
  for (size_t i = 0; i < 4; ++i) {
    rows[i] = shrink<kShift>(add(even[i], odd[i]));
    rows[7 - i] = shrink<kShift>(subtract(even[i], odd[i]));
  }
}

/// Rows become columns, in each half for itself.
ARGOSY_AVX2 void transpose(Rows& rows) {
  Rows a;
  for (size_t i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
  Rows b;
  for (size_t i = 0; i < 2; ++i) {
    b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
  }
  for (size_t i = 0; i < 4; ++i) {
    rows[2 * i] = _mm256_unpacklo_epi64(b[i], b[i + 4]);
    rows[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 4]);
  }
}

ARGOSY_AVX2 void store_two(__m128i rows, uint8_t* to, size_t row_bytes) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), rows);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to + row_bytes), _mm_unpackhi_epi64(rows, rows));
}

}  // namespace

bool has_inverse_dct_pair() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

__attribute__((target("avx2"))) void inverse_dct_pair(const BlockPlace& a,
                                                      const BlockPlace& b,
                                                      const QuantaPair& quanta) {
  Rows rows;
  for (size_t i = 0; i < 8; ++i) {
    const auto* from_a = reinterpret_cast<const __m128i*>(a.coefficients + 8 * i);
    const auto* from_b = reinterpret_cast<const __m128i*>(b.coefficients + 8 * i);
    const __m256i both = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_load_si128(from_a)), _mm_load_si128(from_b), 1);
    rows[i] = _mm256_mullo_epi16(
        both, _mm256_load_si256(reinterpret_cast<const __m256i*>(quanta.rows[i].data())));
  }
  pass<11>(rows);
  transpose(rows);
  pass<18>(rows);
  transpose(rows);
  const __m256i middle = _mm256_set1_epi8(static_cast<char>(CENTERJSAMPLE));
  for (size_t i = 0; i < 8; i += 2) {
    const __m256i two = _mm256_add_epi8(_mm256_packs_epi16(rows[i], rows[i + 1]), middle);
    store_two(_mm256_castsi256_si128(two), a.pixels + i * a.row_bytes, a.row_bytes);
    store_two(_mm256_extracti128_si256(two, 1), b.pixels + i * b.row_bytes, b.row_bytes);
  }
}

#else

bool has_inverse_dct_pair() {
  return false;
}

void inverse_dct_pair(const BlockPlace&, const BlockPlace&, const QuantaPair&) {
  throw InternalError("image.inverse_dct", "called where has_inverse_dct_pair() is false");
}

#endif

}  // namespace argosy::image::codecs
