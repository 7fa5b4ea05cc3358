#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace argosy::engine {

/// What draws normal numbers for the elements of a tensor.
struct NormalDraw {
  uint64_t seed = 0;
  std::string_view name{};        ///< of the tensor; two names have unrelated numbers
  double standard_deviation = 1;  ///< around zero
};

/// Fills `values` with the normal numbers of the elements `first`, `first` + 1, … of a tensor.
///
///     engine::draw_normal({seed, "head.weight", 0.02}, row * width, one_row);
///
/// Element i depends on the seed, the name and i only. So any part of a tensor can be drawn alone,
/// on any rank, with the bits that it has in the whole. The bits are the same on every machine and
/// with every C library, because logarithm, sine and cosine are our own. Thread-safe.
///
/// The largest number is 6.7 deviations, as an element has 32 random bits.
/// Errors: UsageError for a negative `first` or deviation.
/// Source: Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011, with
/// the element's number and a hash of the name as counter; Box & Muller 1958.
void draw_normal(const NormalDraw& draw, int64_t first, std::span<float> values);

/// Returns number `index` of the stream of this seed and name: in [0, 1), a multiple of 2^-32.
/// Otherwise as draw_normal(). Errors: UsageError for a negative index.
[[nodiscard]] double draw_uniform(uint64_t seed, std::string_view name, int64_t index);

}  // namespace argosy::engine
