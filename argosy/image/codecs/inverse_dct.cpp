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

// Each register has the first block in its lower half and the second in its upper half; all steps
// stay within their half. Numbers are of 16 bits, in sums of products of 32.
struct Rows {
  __m256i row[8];
};
struct Wide {  // eight numbers of 32 bits, or pairs of 16, for each block
  __m256i low;
  __m256i high;
};
/// What one pass adds up, as pairs for pmaddwd: inputs 0 and 4, 2 and 6, 1 and 7, 3 and 5.
struct Pairs {
  Wide outer;
  Wide inner;
  Wide far;
  Wide near;
};

/// Constants with 13 bits after the point, for pmaddwd: first·a + second·b.
ARGOSY_AVX2 __m256i weights(int first, int second) {
  return _mm256_set1_epi32(static_cast<int>(static_cast<unsigned>(second) << 16 |
                                            (static_cast<unsigned>(first) & 0xffffU)));
}
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
ARGOSY_AVX2 Wide both(__m256i value) {
  return {value, value};
}

/// The ends of a pass: output i is even[i] + odd[i], output 7 - i their difference, without kShift
/// bits.
template <int kShift>
ARGOSY_AVX2 Rows ends(const Wide (&even)[4], const Wide (&odd)[4]) {
  Rows out;
  for (int i = 0; i < 4; ++i) {
    out.row[i] = shrink<kShift>(add(even[i], odd[i]));
    out.row[7 - i] = shrink<kShift>(subtract(even[i], odd[i]));
  }
  return out;
}

template <int kShift>
ARGOSY_AVX2 Rows pass(const Pairs& in) {
  const Wide half = both(_mm256_set1_epi32(1 << (kShift - 1)));
  const Wide sum = add(weigh(in.outer, weights(8192, 8192)), half);
  const Wide difference = add(weigh(in.outer, weights(8192, -8192)), half);
  const Wide inner_sum = weigh(in.inner, weights(10703, 4433));
  const Wide inner_difference = weigh(in.inner, weights(4433, -10704));
  const Wide even[] = {add(sum, inner_sum),
                       add(difference, inner_difference),
                       subtract(difference, inner_difference),
                       subtract(sum, inner_sum)};
  const Wide odd[] = {
      add(weigh(in.far, weights(11363, 2260)), weigh(in.near, weights(9633, 6437))),
      add(weigh(in.far, weights(9633, -6436)), weigh(in.near, weights(-2259, -11362))),
      add(weigh(in.far, weights(6437, 9633)), weigh(in.near, weights(-11362, 2261))),
      add(weigh(in.far, weights(2260, -11363)), weigh(in.near, weights(-6436, 9633)))};
  return ends<kShift>(even, odd);
}

/// The same where inputs 4 to 7 are zero: pairs are of inputs 0 and 2, 1 and 3.
template <int kShift>
ARGOSY_AVX2 Rows half_pass(Wide even_pairs, Wide odd_pairs) {
  const Wide half = both(_mm256_set1_epi32(1 << (kShift - 1)));
  const Wide even[] = {add(weigh(even_pairs, weights(8192, 10703)), half),
                       add(weigh(even_pairs, weights(8192, 4433)), half),
                       add(weigh(even_pairs, weights(8192, -4433)), half),
                       add(weigh(even_pairs, weights(8192, -10703)), half)};
  const Wide odd[] = {weigh(odd_pairs, weights(11363, 9633)),
                      weigh(odd_pairs, weights(9633, -2259)),
                      weigh(odd_pairs, weights(6437, -11362)),
                      weigh(odd_pairs, weights(2260, -6436))};
  return ends<kShift>(even, odd);
}

/// In each half the numbers of 16 bits that `order` names, two by two as bytes.
ARGOSY_AVX2 __m256i reorder(__m256i numbers, __m128i order) {
  return _mm256_shuffle_epi8(numbers, _mm256_broadcastsi128_si256(order));
}

/// What the second pass adds up, from the rows of the first.
ARGOSY_AVX2 Pairs pairs_of(Rows rows) {
  const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, 2, 3, 14, 15, 6, 7, 10, 11);
  for (__m256i& row : rows.row) {
    row = reorder(row, order);
  }
  Pairs out;
  const auto transpose = [](const __m256i* four, __m256i& a, __m256i& b, __m256i& c, __m256i& d)
      __attribute__((target("avx2"), always_inline)) {
    const __m256i low_01 = _mm256_unpacklo_epi32(four[0], four[1]);
    const __m256i high_01 = _mm256_unpackhi_epi32(four[0], four[1]);
    const __m256i low_23 = _mm256_unpacklo_epi32(four[2], four[3]);
    const __m256i high_23 = _mm256_unpackhi_epi32(four[2], four[3]);
    a = _mm256_unpacklo_epi64(low_01, low_23);
    b = _mm256_unpackhi_epi64(low_01, low_23);
    c = _mm256_unpacklo_epi64(high_01, high_23);
    d = _mm256_unpackhi_epi64(high_01, high_23);
  };
  transpose(rows.row, out.outer.low, out.inner.low, out.far.low, out.near.low);
  transpose(rows.row + 4, out.outer.high, out.inner.high, out.far.high, out.near.high);
  return out;
}

ARGOSY_AVX2 void store_two(__m128i rows, uint8_t* to, size_t row_bytes) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), rows);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to + row_bytes), _mm_unpackhi_epi64(rows, rows));
}

/// Columns become rows of bytes around 128.
ARGOSY_AVX2 void store(const Rows& columns, const BlockPlace& a, const BlockPlace& b) {
  const __m256i* column = columns.row;
  const __m256i by_0_4 = _mm256_packs_epi16(column[0], column[4]);
  const __m256i by_1_5 = _mm256_packs_epi16(column[1], column[5]);
  const __m256i by_2_6 = _mm256_packs_epi16(column[2], column[6]);
  const __m256i by_3_7 = _mm256_packs_epi16(column[3], column[7]);
  const __m256i by_01 = _mm256_unpacklo_epi8(by_0_4, by_1_5);
  const __m256i by_45 = _mm256_unpackhi_epi8(by_0_4, by_1_5);
  const __m256i by_23 = _mm256_unpacklo_epi8(by_2_6, by_3_7);
  const __m256i by_67 = _mm256_unpackhi_epi8(by_2_6, by_3_7);
  const Wide left = interleave(by_01, by_23);   // columns 0…3 of rows 0…3 and 4…7
  const Wide right = interleave(by_45, by_67);  // columns 4…7
  const __m256i two[] = {_mm256_unpacklo_epi32(left.low, right.low),
                         _mm256_unpackhi_epi32(left.low, right.low),
                         _mm256_unpacklo_epi32(left.high, right.high),
                         _mm256_unpackhi_epi32(left.high, right.high)};
  const __m256i middle = _mm256_set1_epi8(static_cast<char>(CENTERJSAMPLE));
  for (size_t i = 0; i < 4; ++i) {
    const __m256i rows = _mm256_add_epi8(two[i], middle);
    store_two(_mm256_castsi256_si128(rows), a.pixels + 2 * i * a.row_bytes, a.row_bytes);
    store_two(_mm256_extracti128_si256(rows, 1), b.pixels + 2 * i * b.row_bytes, b.row_bytes);
  }
}

/// Is nothing beyond the first four rows and columns? So it is in half of a photograph's blocks.
ARGOSY_AVX2 bool is_small(const Rows& rows) {
  const __m256i* row = rows.row;
  const __m256i upper =
      _mm256_or_si256(_mm256_or_si256(row[0], row[1]), _mm256_or_si256(row[2], row[3]));
  const __m256i lower =
      _mm256_or_si256(_mm256_or_si256(row[4], row[5]), _mm256_or_si256(row[6], row[7]));
  const __m256i right = _mm256_unpackhi_epi64(upper, upper);
  const __m256i beyond = _mm256_or_si256(lower, right);
  return _mm256_testz_si256(beyond, beyond) != 0;
}

/// Both passes where is_small().
ARGOSY_AVX2 Rows transform_small(const Rows& in) {
  const __m256i zero = _mm256_setzero_si256();
  // Only columns 0…3: the lower numbers of each half.
  const Rows rows = half_pass<11>({_mm256_unpacklo_epi16(in.row[0], in.row[2]), zero},
                                  {_mm256_unpacklo_epi16(in.row[1], in.row[3]), zero});
  const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  __m256i two[4];
  for (int i = 0; i < 4; ++i) {
    two[i] = reorder(_mm256_unpacklo_epi64(rows.row[2 * i], rows.row[2 * i + 1]), order);
  }
  return half_pass<18>(
      {_mm256_unpacklo_epi64(two[0], two[1]), _mm256_unpacklo_epi64(two[2], two[3])},
      {_mm256_unpackhi_epi64(two[0], two[1]), _mm256_unpackhi_epi64(two[2], two[3])});
}

}  // namespace

bool has_inverse_dct_pair() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

__attribute__((target("avx2"))) void inverse_dct_pair(const BlockPlace& a,
                                                      const BlockPlace& b,
                                                      const QuantaPair& quanta) {
  Rows in;
  for (size_t i = 0; i < 8; ++i) {
    const auto* from_a = reinterpret_cast<const __m128i*>(a.coefficients + 8 * i);
    const auto* from_b = reinterpret_cast<const __m128i*>(b.coefficients + 8 * i);
    in.row[i] = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_load_si128(from_a)), _mm_load_si128(from_b), 1);
  }
  const bool small = is_small(in);
  for (size_t i = 0; i < 8; ++i) {
    in.row[i] = _mm256_mullo_epi16(
        in.row[i], _mm256_load_si256(reinterpret_cast<const __m256i*>(quanta.rows[i].data())));
  }
  if (small) {
    store(transform_small(in), a, b);
    return;
  }
  const __m256i* row = in.row;
  const Rows rows = pass<11>({interleave(row[0], row[4]),
                              interleave(row[2], row[6]),
                              interleave(row[1], row[7]),
                              interleave(row[3], row[5])});
  store(pass<18>(pairs_of(rows)), a, b);
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
