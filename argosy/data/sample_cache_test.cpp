#include "argosy/data/sample_cache.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/data/random.h"

namespace argosy::data {
namespace {

constexpr auto kLength = [](const std::string& value) { return value.size(); };

TEST(SampleCache, KeepsWhatFitsAndMakesTheRestAnew) {
  const SampleCache<std::string> cache(10, {.max_bytes = 35});
  std::vector<int> made(10, 0);
  const auto get = [&](int64_t i) {
    return *cache.get(
        i,
        [&] {
          ++made[i];
          return std::string(10, static_cast<char>('a' + i));
        },
        kLength);
  };
  for (int round = 0; round < 3; ++round) {
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(get(i), std::string(10, static_cast<char>('a' + i)));
    }
  }
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(made[i], i < 3 ? 1 : 3) << i;
  }
  const CacheStats stats = cache.stats();
  EXPECT_EQ(stats.hits, 6);
  EXPECT_EQ(stats.misses, 24);
  EXPECT_EQ(stats.kept, 3);
  EXPECT_EQ(stats.bytes, 30);
  EXPECT_TRUE(stats.full);
}

TEST(SampleCache, EachValueIsMadeOnceHoweverManyAsk) {
  constexpr int64_t kValues = 200;
  const SampleCache<int64_t> cache(kValues, {.max_bytes = 1 << 20});
  std::vector<std::atomic<int>> made(kValues);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(1, 0, t);
      for (int i = 0; i < 2000; ++i) {
        const int64_t index = random.integer(0, kValues - 1);
        const auto value = cache.get(
            index,
            [&] {
              ++made[index];
              std::this_thread::yield();
              return index * index;
            },
            [](int64_t) { return 8; });
        wrong += *value == index * index ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  for (int64_t i = 0; i < kValues; ++i) {
    EXPECT_LE(made[i], 1) << i;
  }
  EXPECT_EQ(cache.stats().hits + cache.stats().misses, 4 * 2000);
  EXPECT_EQ(cache.stats().misses, cache.stats().kept);
}

// What is too large to keep is still made by one thread at a time.
TEST(SampleCache, TwoThreadsNeverMakeTheSameValueAtOnce) {
  const SampleCache<int> cache(1, {.max_bytes = 1});
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        (void)cache.get(
            0,
            [&] {
              most = std::max<int>(most, ++inside);
              std::this_thread::yield();
              --inside;
              return 0;
            },
            [](int) { return 2; });
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(cache.stats().misses, 200);
}

TEST(SampleCache, AnErrorIsItsCallersAndTheNextTriesAgain) {
  const SampleCache<std::string> cache(2, {.max_bytes = 100});
  EXPECT_THROW((void)cache.get(
                   1, []() -> std::string { throw std::runtime_error("x"); }, kLength),
               std::runtime_error);
  EXPECT_EQ(*cache.get(
                1, [] { return std::string("good"); }, kLength),
            "good");
  EXPECT_EQ(cache.stats().kept, 1);
  // Who counts the bytes may throw too.
  EXPECT_THROW((void)cache.get(
                   0,
                   [] { return std::string(); },
                   [](const std::string&) -> int64_t { throw std::runtime_error("y"); }),
               std::runtime_error);
  EXPECT_EQ(cache.stats().kept, 1);
}

TEST(SampleCache, ValuesOutliveIt) {
  std::shared_ptr<const std::string> value;
  {
    const SampleCache<std::string> cache(1, {.max_bytes = 100});
    value = cache.get(
        0, [] { return std::string("kept"); }, kLength);
  }
  EXPECT_EQ(*value, "kept");
}

TEST(SampleCache, ItsArgumentsAreChecked) {
  EXPECT_THROW(SampleCache<int>(-1, {.max_bytes = 1}), UsageError);
  EXPECT_THROW(SampleCache<int>(1, {.max_bytes = 0}), UsageError);
  const SampleCache<int> cache(3, {.max_bytes = 1});
  for (const int64_t index : {-1, 3}) {
    EXPECT_THROW((void)cache.get(
                     index, [] { return 1; }, [](int) { return 1; }),
                 UsageError);
  }
}

}  // namespace
}  // namespace argosy::data
