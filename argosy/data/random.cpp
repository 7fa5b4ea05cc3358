#include "argosy/data/random.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "argosy/base/check.h"

namespace argosy::data {
namespace {

// Beside the 0 to 3 of the state's words, so that no child's key is a word of its parent's state.
constexpr uint64_t kFork = 4;
constexpr uint64_t kSpawn = 5;

}  // namespace

Random::Random(uint64_t seed, int64_t epoch, int64_t index)
    : Random(Key{mix(mix(mix(seed), static_cast<uint64_t>(epoch)), static_cast<uint64_t>(index))}) {
}

Random::Random(Key key) : key_(key.value) {
  for (uint64_t i = 0; i < 4; ++i) {
    state_[i] = mix(key_, i);
  }
  if ((state_[0] | state_[1] | state_[2] | state_[3]) == 0) {
    state_[0] = 1;  // xoshiro's only dead state
  }
}

uint64_t Random::operator()() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() {
  return static_cast<double>((*this)() >> 11) * 0x1.0p-53;
}

double Random::uniform(double low, double high) {
  return low + (high - low) * uniform();
}

int64_t Random::integer(int64_t low, int64_t high) {
  ARGOSY_CHECK(low <= high, "data.Random", "integer: expected low <= high, got {} > {}", low, high);
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  if (span == 0) {  // all 2^64 values
    return static_cast<int64_t>((*this)());
  }
  // Draws above the largest multiple of `span` would favour small values.
  const uint64_t limit = UINT64_MAX - (UINT64_MAX % span + 1) % span;
  uint64_t draw = (*this)();
  while (draw > limit) {
    draw = (*this)();
  }
  return static_cast<int64_t>(static_cast<uint64_t>(low) + draw % span);
}

double Random::normal(double mean, double stddev) {
  // Box-Muller, one of its two numbers: a stream without hidden state is easier to reason about.
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return mean + stddev * radius * std::cos(2.0 * std::numbers::pi * uniform());
}

Random Random::fork(uint64_t part) const {
  return Random(Key{mix(mix(key_, kFork), part)});
}

Random Random::spawn() {
  return Random(Key{mix(mix(key_, kSpawn), spawned_++)});
}

}  // namespace argosy::data
