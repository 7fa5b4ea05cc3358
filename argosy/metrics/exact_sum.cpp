#include "argosy/metrics/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"

namespace argosy::metrics {
namespace {

constexpr int kDigitBits = 32;
constexpr int64_t kBase = int64_t{1} << kDigitBits;
constexpr int kLowestExponent = -1074;  // of the smallest subnormal
// A term adds less than 2^32 to a digit, so 2^30 of them cannot overflow 63 bits.
constexpr int64_t kAddsBeforeCarry = int64_t{1} << 30;

/// Magnitude of digits in [0, 2^32), rounded to nearest even.
template <typename Digits>
double magnitude(const Digits& digits) {
  int top = static_cast<int>(digits.size()) - 1;
  while (top >= 0 && digits[top] == 0) {
    --top;
  }
  if (top < 0) {
    return 0.0;
  }
  // Three digits hold at least 65 significant bits; what lies below only matters as "more than
  // zero", which the lowest bit can say.
  const int low = std::max(0, top - 2);
  unsigned __int128 head = 0;
  for (int i = top; i >= low; --i) {
    head = head << kDigitBits | static_cast<uint64_t>(digits[i]);
  }
  if (std::any_of(digits.begin(), digits.begin() + low, [](int64_t digit) { return digit != 0; })) {
    head |= 1;
  }
  // A result below the normal range has all its bits in head, so ldexp cannot round a second time.
  return std::ldexp(static_cast<double>(head), kDigitBits * low + kLowestExponent);
}

}  // namespace

void ExactSum::add(double term) {
  if (!std::isfinite(term)) [[unlikely]] {
    nans_ += std::isnan(term) ? 1 : 0;
    positive_infinities_ += term > 0 ? 1 : 0;
    negative_infinities_ += term < 0 ? 1 : 0;
    return;
  }
  const auto bits = std::bit_cast<uint64_t>(term);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const uint64_t mantissa = exponent == 0 ? fraction : fraction | uint64_t{1} << 52;
  const int position = std::max(exponent, 1) - 1;  // of the mantissa's lowest bit, above 2^-1074
  const auto shifted = static_cast<unsigned __int128>(mantissa) << (position % kDigitBits);
  const int64_t sign = std::signbit(term) ? -1 : 1;
  int64_t* digit = digits_.data() + position / kDigitBits;
  digit[0] += sign * static_cast<int64_t>(static_cast<uint32_t>(shifted));
  digit[1] += sign * static_cast<int64_t>(static_cast<uint32_t>(shifted >> 32));
  digit[2] += sign * static_cast<int64_t>(static_cast<uint32_t>(shifted >> 64));
  if (++adds_since_carry_ == kAddsBeforeCarry) [[unlikely]] {
    carry();
  }
}

void ExactSum::carry() {
  for (int i = 0; i + 1 < kDigits; ++i) {
    const int64_t over = digits_[i] >> kDigitBits;  // arithmetic: rounds towards minus infinity
    digits_[i] -= over * kBase;
    digits_[i + 1] += over;  // the last digit keeps the sign
  }
  adds_since_carry_ = 0;
}

double ExactSum::value() const {
  if (nans_ > 0 || (positive_infinities_ > 0 && negative_infinities_ > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (positive_infinities_ > 0 || negative_infinities_ > 0) {
    return positive_infinities_ > 0 ? HUGE_VAL : -HUGE_VAL;
  }
  ExactSum sum = *this;
  sum.carry();
  const bool negative = sum.digits_.back() < 0;
  if (negative) {
    std::transform(
        sum.digits_.begin(), sum.digits_.end(), sum.digits_.begin(), std::negate<int64_t>());
    sum.carry();
  }
  return negative ? -magnitude(sum.digits_) : magnitude(sum.digits_);
}

ExactSum ExactSum::all_reduced(const comm::Group& group) const {
  ExactSum sum = *this;
  if (!group.valid() || group.size() == 1) {
    return sum;
  }
  sum.carry();  // leaves room for 2^31 ranks
  at::Tensor wire = at::empty({kDigits + 3}, at::kLong);
  auto* out = wire.data_ptr<int64_t>();
  std::copy(sum.digits_.begin(), sum.digits_.end(), out);
  out[kDigits] = positive_infinities_;
  out[kDigits + 1] = negative_infinities_;
  out[kDigits + 2] = nans_;
  comm::all_reduce(wire, group);
  std::copy(out, out + kDigits, sum.digits_.begin());
  sum.positive_infinities_ = out[kDigits];
  sum.negative_infinities_ = out[kDigits + 1];
  sum.nans_ = out[kDigits + 2];
  sum.carry();
  return sum;
}

State ExactSum::state() const {
  ExactSum sum = *this;
  sum.carry();
  State state(sum.digits_.begin(), sum.digits_.end());
  state.insert(state.end(), {positive_infinities_, negative_infinities_, nans_});
  return state;
}

void ExactSum::load_state(const State& state) {
  StateReader reader("metrics.ExactSum", state);
  ExactSum sum;
  for (int i = 0; i < kDigits; ++i) {
    sum.digits_[i] =
        i + 1 < kDigits ? reader.next_count() : reader.next();  // the last has the sign
    ARGOSY_CHECK(sum.digits_[i] < kBase && sum.digits_[i] >= -kBase,
                 "metrics.ExactSum",
                 "the state is damaged: digit {} is {}",
                 i,
                 sum.digits_[i]);
  }
  sum.positive_infinities_ = reader.next_count();
  sum.negative_infinities_ = reader.next_count();
  sum.nans_ = reader.next_count();
  reader.end();
  *this = sum;
}

void ExactSum::merge_state(const State& other) {
  ExactSum more;
  more.load_state(other);
  std::array<int64_t, 3> counts = {positive_infinities_, negative_infinities_, nans_};
  merge_counts("metrics.ExactSum",
               counts,
               std::array{more.positive_infinities_, more.negative_infinities_, more.nans_});
  carry();
  std::transform(
      digits_.begin(), digits_.end(), more.digits_.begin(), digits_.begin(), std::plus<int64_t>());
  carry();
  positive_infinities_ = counts[0];
  negative_infinities_ = counts[1];
  nans_ = counts[2];
}

}  // namespace argosy::metrics
