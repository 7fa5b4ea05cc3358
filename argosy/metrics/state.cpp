#include "argosy/metrics/state.h"

#include <algorithm>
#include <bit>

#include "argosy/base/check.h"

namespace argosy::metrics {

int64_t StateReader::next() {
  ARGOSY_CHECK(at_ < state_.size(),
               where_,
               "the state has {} numbers, which is too few: it is of another metric or cut short",
               state_.size());
  return state_[at_++];
}

int64_t StateReader::next_count() {
  const int64_t count = next();
  ARGOSY_CHECK(count >= 0,
               where_,
               "the state is damaged or of another metric: number {} is a count and is {}",
               at_ - 1,
               count);
  return count;
}

State StateReader::take(int64_t numbers) {
  ARGOSY_CHECK(numbers >= 0 && static_cast<uint64_t>(numbers) <= state_.size() - at_,
               where_,
               "the state has {} numbers, expected {} more after {}: it is of another metric or "
               "cut short",
               state_.size(),
               numbers,
               at_);
  const auto first = state_.begin() + static_cast<std::ptrdiff_t>(at_);
  at_ += static_cast<size_t>(numbers);
  return {first, first + numbers};
}

void StateReader::expect(int64_t own, const char* option) {
  const int64_t saved = next();
  ARGOSY_CHECK(saved == own,
               where_,
               "the state was kept with {} = {}, this metric has {}. Make it with the same options",
               option,
               saved,
               own);
}

void StateReader::end() const {
  ARGOSY_CHECK(at_ == state_.size(),
               where_,
               "the state has {} numbers, expected {}: it is of another metric",
               state_.size(),
               at_);
}

void merge_counts(const char* where, std::span<int64_t> counts, std::span<const int64_t> more) {
  std::vector<int64_t> sums(counts.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    ARGOSY_CHECK(!__builtin_add_overflow(counts[i], more[i], &sums[i]),
                 where,
                 "the state is damaged: a count of {} and one of {} are more than there can be",
                 counts[i],
                 more[i]);
  }
  std::copy(sums.begin(), sums.end(), counts.begin());
}

int64_t bits_of(double value) {
  return std::bit_cast<int64_t>(value);
}

double double_of(int64_t bits) {
  return std::bit_cast<double>(bits);
}

}  // namespace argosy::metrics
