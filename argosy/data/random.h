#pragma once

#include <cstdint>

namespace argosy::data {

/// Spreads a and b over 64 bits, so that neighbours give unrelated numbers. Source: SplitMix64's
/// finaliser.
[[nodiscard]] constexpr uint64_t mix(uint64_t a, uint64_t b = 0) {
  uint64_t z = a * 0x9e3779b97f4a7c15ULL + b + 0x632be59bd9b4e019ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// The random numbers of one sample in one epoch, from which an augmentation draws.
///
///     data::Random random(seed, epoch, index);
///     if (random.bernoulli(0.5)) flip(image);
///     int64_t top = random.integer(0, height - crop);   // both ends included
///
/// The stream depends on the three keys only, never on the thread or the order of work. So a loader
/// gives the same batches with any number of threads. It is the same on every platform, because it
/// uses no std distribution, whose output is not standardised. normal() uses the C library's log
/// and cos, so its last bit is the library's. It is cheap to make (four multiplications per word)
/// and to copy. Not thread-safe.
/// Source: xoshiro256**, Blackman & Vigna 2018, seeded by SplitMix64.
class Random final {
 public:
  Random(uint64_t seed, int64_t epoch, int64_t index);

  /// Returns 64 random bits. With min() and max() this is a std::uniform_random_bit_generator.
  uint64_t operator()();
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return UINT64_MAX; }

  /// Returns a number in [0, 1), a multiple of 2^-53.
  double uniform();
  /// Returns a number in [low, high).
  double uniform(double low, double high);
  /// Returns a number from low to high, both included, each equally likely. Errors: UsageError when
  /// low > high.
  int64_t integer(int64_t low, int64_t high);
  /// Returns true with this probability.
  bool bernoulli(double probability) { return uniform() < probability; }
  double normal(double mean = 0, double stddev = 1);

  /// Returns the stream of one part of the work on this sample, such as a step of a chain of
  /// augmentations. It does not depend on what was drawn or spawned before, so the draws of one
  /// part never change another's. Parts with different numbers have unrelated streams.
  [[nodiscard]] Random fork(uint64_t part) const;
  /// Returns another stream with each call, whatever was drawn or forked before. So two augmented
  /// views of one sample differ, and a resumed run gets the same two.
  [[nodiscard]] Random spawn();

 private:
  struct Key {
    uint64_t value;
  };
  explicit Random(Key key);

  uint64_t state_[4];
  uint64_t key_;          // decides the stream; parent of fork() and spawn()
  uint64_t spawned_ = 0;  // calls of spawn()
};

}  // namespace argosy::data
