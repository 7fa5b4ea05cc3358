#include "argosy/data/loader_stats.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::data {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(LoaderStats, InputBoundIsTheShareOfTheLoopsTime) {
  LoaderStats stats;
  EXPECT_EQ(stats.input_bound(), 0);
  EXPECT_EQ(stats.to_string(), "no epoch yet");
  stats = {.epoch = 3,
           .batches = 10,
           .samples = 320,
           .waited = 250ms,
           .first_batch = 50ms,
           .used = 1750ms,
           .pool_bytes = 1'234'567};
  EXPECT_DOUBLE_EQ(stats.input_bound(), 0.125);
  EXPECT_EQ(stats.to_string(),
            "epoch 3: 10 batches, 320 samples in 2.00 s; input-bound: 13 % (waited 0.25 s, of it "
            "0.05 s for the first batch); 1.2 MB of batches");
  stats.bad.skip(DataError("a", "b"));
  stats.bad.replace(DataError("a", "c"), 7);
  EXPECT_THAT(stats.to_string(),
              testing::EndsWith("of batches; 1 bad samples skipped; 1 bad samples replaced"));
}

TEST(BadSamples, TheFirstMessagesAreKept) {
  BadSamples all;
  for (int64_t i = 0; i < 4; ++i) {
    BadSamples of_batch;
    of_batch.skip(DataError("vision.jpeg", "torn", {.path = "", .index = i}));
    of_batch.replace(DataError("vision.jpeg", "gray", {.path = "", .index = 10 + i}), 20 + i);
    all.add(of_batch);
  }
  EXPECT_EQ(all.skipped, 4);
  EXPECT_EQ(all.replaced, 4);
  EXPECT_EQ(all.count(), 8);
  EXPECT_THAT(all.messages,
              ElementsAre("[vision.jpeg] torn (sample 0)",
                          "[vision.jpeg] gray (sample 10), replaced by sample 20",
                          "[vision.jpeg] torn (sample 1)"));
}

// The clock is read at the loop's wishes and answers, whatever lies between.
TEST(LoopClock, WaitsAndUsesAddUpToTheLoop) {
  LoaderStats stats;
  detail::LoopClock clock;
  const auto begin = std::chrono::steady_clock::now();
  clock.begin(stats, 5);
  for (int i = 0; i < 3; ++i) {
    clock.asks(stats);
    std::this_thread::sleep_for(2ms);  // the time itself is the subject
    clock.has(stats);
    std::this_thread::sleep_for(i == 2 ? 0ms : 5ms);
  }
  const LoaderStats::Seconds whole = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(stats.epoch, 5);
  EXPECT_GE(stats.waited, 6ms);
  EXPECT_GE(stats.used, 10ms);
  EXPECT_GE(stats.first_batch, 2ms);
  EXPECT_LT(stats.first_batch, stats.waited);
  EXPECT_LE(stats.waited + stats.used, whole);
  clock.begin(stats, 6);
  EXPECT_EQ(stats.waited.count() + stats.used.count(), 0);
}

}  // namespace
}  // namespace argosy::data
