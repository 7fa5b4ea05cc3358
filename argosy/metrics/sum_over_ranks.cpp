#include "argosy/metrics/sum_over_ranks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"

namespace argosy::metrics {
namespace {

using Numbers = std::array<int64_t, ExactSum::kNumbers>;
constexpr const char* kSum = "metrics.ExactSum";

Numbers numbers_of(const State& state) {
  constexpr int64_t kBase = int64_t{1} << 32;
  StateReader reader(kSum, state);
  Numbers numbers{};
  for (std::size_t i = 0; i < ExactSum::kNumbers; ++i) {
    const bool has_sign = i + 1 == ExactSum::kDigits;
    numbers[i] = has_sign ? reader.next() : reader.next_count();
    ARGOSY_CHECK(i >= ExactSum::kDigits || (numbers[i] < kBase && numbers[i] >= -kBase),
                 kSum,
                 "the state is damaged: digit {} is {}",
                 i,
                 numbers[i]);
  }
  reader.end();
  return numbers;
}

}  // namespace

SumOverRanks SumOverRanks::all_reduced(const comm::Group& group) const {
  SumOverRanks all = *this;
  if (group.valid() && group.size() > 1) {
    constexpr auto kNumbers = static_cast<int64_t>(ExactSum::kNumbers);
    const at::Tensor wire = at::empty({kNumbers}, at::kLong);
    auto* const numbers = wire.data_ptr<int64_t>();
    std::ranges::copy(sum_.numbers(), numbers);
    comm::all_reduce(wire, group);
    all.sum_ = ExactSum::from(std::span<const int64_t, ExactSum::kNumbers>(numbers, kNumbers));
  }
  return all;
}

State SumOverRanks::state() const {
  const Numbers numbers = sum_.numbers();
  return {numbers.begin(), numbers.end()};
}

void SumOverRanks::load_state(const State& state) {
  sum_ = ExactSum::from(numbers_of(state));
}

void SumOverRanks::merge_state(const State& other) {
  const Numbers theirs = numbers_of(other);
  Numbers counts = sum_.numbers();
  merge_counts(kSum, counts, theirs);
  sum_ = ExactSum::from(counts);
}

}  // namespace argosy::metrics
