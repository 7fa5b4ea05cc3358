#pragma once

#include <array>
#include <cstdint>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

/// A sum of doubles without any rounding: value() is the true sum, rounded once. It does not depend
/// on the order of the terms, so N ranks that add their parts get the bits that one process gets.
///
/// NaN and infinities are kept as counts: a NaN, or both infinities, give NaN.
/// Not thread-safe. Cost: about 5 ns a term; 560 bytes of state, which is what travels.
/// Source: fixed-point accumulation over the whole range of exponents, Kulisch & Miranker, "The
/// arithmetic of the digital computer: a new approach", SIAM Review 1986.
class ExactSum final {
 public:
  void add(double term);
  void reset() { *this = ExactSum(); }
  [[nodiscard]] double value() const;

  /// The sum over the ranks, on every rank. An empty group: this sum itself.
  /// Collective over `group`.
  [[nodiscard]] ExactSum all_reduced(const comm::Group& group) const;

  /// 71 numbers, the same for the same sum however it was reached.
  [[nodiscard]] State state() const;
  /// Errors: UsageError for what is no state of a sum.
  void load_state(const State& state);
  /// Adds the terms of another sum.
  void merge_state(const State& other);

 private:
  void carry();

  // Digit i counts units of 2^(32 i - 1074); 66 digits reach past the largest double, the rest is
  // room for carries. Between carry()s a digit may leave [0, 2^32).
  static constexpr int kDigits = 68;
  std::array<int64_t, kDigits> digits_{};
  int64_t positive_infinities_ = 0;
  int64_t negative_infinities_ = 0;
  int64_t nans_ = 0;
  int64_t adds_since_carry_ = 0;
};

}  // namespace argosy::metrics
