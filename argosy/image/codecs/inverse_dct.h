#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {

/// Quantisation tables of two blocks, row beside row.
struct alignas(32) QuantaPair {
  std::array<std::array<int16_t, 16>, DCTSIZE> rows{};
};
[[nodiscard]] QuantaPair pair_of(const JQUANT_TBL& a, const JQUANT_TBL& b);

/// A block of coefficients in natural order, 16-byte aligned, and where its pixels go.
struct BlockPlace {
  const int16_t* coefficients = nullptr;
  uint8_t* pixels = nullptr;
  size_t row_bytes = 0;
};

/// Can inverse_dct_pair() be called on this machine? (It has AVX2.)
[[nodiscard]] bool has_inverse_dct_pair();

/// libjpeg's accurate inverse DCT (islow) of two blocks, one in each half of a register, so that
/// nothing crosses from half to half: half again as fast as libjpeg's for one. The same pixels.
/// Source: Loeffler, Ligtenberg, Moschytz, "Practical fast 1-D DCT algorithms with 11
/// multiplications", ICASSP 1989, in the integer form of libjpeg's jidctint.c, its sums written out
/// as pairs of products.
void inverse_dct_pair(const BlockPlace& a, const BlockPlace& b, const QuantaPair& quanta);

}  // namespace argosy::image::codecs
