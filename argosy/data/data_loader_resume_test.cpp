#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"

namespace argosy::data {
namespace {

using testing::HasSubstr;

struct Noisy {
  int64_t size() const { return 23; }
  std::tuple<int64_t, double> get(int64_t index, Random& random) const {
    return {index, random.uniform()};
  }
};

using Seen = std::vector<std::tuple<at::Tensor, at::Tensor>>;

template <typename Loader>
Seen take(Loader& loader, int64_t batches) {
  Seen seen;
  if (batches == 0) {
    return seen;
  }
  for (auto& [x, y] : loader) {
    seen.emplace_back(x, y);
    if (static_cast<int64_t>(seen.size()) == batches) {
      break;
    }
  }
  return seen;
}

void expect_same_from(const Seen& a, const Seen& b, size_t from) {
  ASSERT_EQ(a.size() + from, b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::equal(std::get<0>(a[i]), std::get<0>(b[i + from])));
    EXPECT_TRUE(at::equal(std::get<1>(a[i]), std::get<1>(b[i + from])));
  }
}

constexpr int64_t kAll = 1000;

TEST(DataLoaderResume, FromEveryPositionExactlyTheRestAndThenTheNextEpoch) {
  const Noisy set;
  const DistributedBatchSamplerOptions sampling{
      .batch_size = 2, .num_replicas = 2, .rank = 1, .shuffle = true};
  const auto make = [&](int threads) {
    return DataLoader(
        set, DistributedBatchSampler(23, sampling), {.num_workers = threads, .seed = 5});
  };
  auto uninterrupted = make(0);
  uninterrupted.set_epoch(2);
  const Seen second = take(uninterrupted, kAll);
  const Seen third = take(uninterrupted, kAll);
  ASSERT_EQ(second.size(), 6U);
  for (const int threads : {0, 2}) {
    for (int64_t position = 0; position <= 6; ++position) {
      auto interrupted = make(threads);
      interrupted.set_epoch(2);
      (void)take(interrupted, position);
      const std::string checkpoint = interrupted.state().to_json();

      auto resumed = make(2 - threads);
      resumed.load_state(LoaderState::from_json(checkpoint));
      if (position < 6) {
        EXPECT_EQ(interrupted.state().position, position);  // consumed, not made ahead
        expect_same_from(take(resumed, kAll), second, position);
      }
      EXPECT_EQ(resumed.epoch(), 3);
      expect_same_from(take(resumed, kAll), third, 0);
    }
  }
}

TEST(DataLoaderResume, InsideTheLoopTheBatchInHandCounts) {
  DataLoader loader(Noisy(), {.batch_size = 5, .num_workers = 2});
  int64_t expected = 0;
  for ([[maybe_unused]] auto& batch : loader) {
    ++expected;
    const LoaderState state = loader.state();
    EXPECT_EQ(state.epoch, expected < 5 ? 0 : 1);
    EXPECT_EQ(state.position, expected < 5 ? expected : 0);
  }
  EXPECT_EQ(expected, 5);
}

TEST(DataLoaderResume, TheUsualLoopWithSetEpochResumesInTheMiddle) {
  const Noisy set;
  DataLoader before(set, {.batch_size = 5, .shuffle = true});
  before.set_epoch(3);
  ASSERT_EQ(take(before, 4).size(), 4U);
  DataLoader loader(set, {.batch_size = 5, .shuffle = true});
  loader.load_state(before.state());
  std::vector<size_t> counts;
  for (int64_t epoch = 3; epoch < 5; ++epoch) {
    loader.set_epoch(epoch);
    counts.push_back(take(loader, kAll).size());
  }
  EXPECT_THAT(counts, testing::ElementsAre(1, 5));
}

// What the loader's own options do not show: the batch sampler's seed, order, sizes and ranks.
TEST(DataLoaderResume, AStateOfAnotherOrderIsRefused) {
  const Noisy set;
  using Options = DistributedBatchSamplerOptions;
  const auto loader_of = [&](const Options& options) {
    return DataLoader(set, DistributedBatchSampler(set.size(), options));
  };
  const Options saved{.batch_size = 4, .num_replicas = 2, .rank = 1, .shuffle = true, .seed = 7};
  LoaderState state;
  {
    auto loader = loader_of(saved);
    (void)loader.begin();
    state = loader.state();
  }
  EXPECT_NO_THROW(loader_of(saved).load_state(LoaderState::from_json(state.to_json())));
  const auto refused = [&](auto change) {
    Options options = saved;
    change(options);
    auto loader = loader_of(options);
    EXPECT_EQ(loader.size(), state.batches) << "the number of batches alone would tell";
    try {
      loader.load_state(state);
    } catch (const UsageError& error) {
      return std::string(error.what()).find("the batches of epoch 0 are not those") !=
             std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused([](Options& o) { o.seed = 8; }));
  EXPECT_TRUE(refused([](Options& o) { o.shuffle = false; }));
  EXPECT_TRUE(refused([](Options& o) { o.rank = 0; }));
  EXPECT_TRUE(refused([](Options& o) {
    o.batch_size = 2;
    o.num_replicas = 4;
  }));
}

TEST(DataLoaderResume, AStateThatDoesNotFitIsRefusedByName) {
  const Noisy set;
  DataLoader loader(set, {.batch_size = 5, .seed = 1});
  const auto error_of = [&](LoaderState state) -> std::string {
    try {
      loader.load_state(state);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const LoaderState good = loader.state();
  LoaderState other = good;
  other.samples = 24;
  EXPECT_EQ(
      error_of(other),
      "[data.load_state] the saved state belongs to another loader: this one has samples = 23, "
      "the state says 24. Resume with the same data, seed, batch size and number of ranks");
  other = good;
  other.batches = 4;
  EXPECT_THAT(error_of(other), HasSubstr("batches = 5, the state says 4"));
  other = good;
  other.seed = 2;
  EXPECT_THAT(error_of(other), HasSubstr("seed = 1, the state says 2"));
  other = good;
  other.position = 6;
  EXPECT_THAT(error_of(other), HasSubstr("position 6 lies behind the 5 batches"));
  EXPECT_EQ(error_of(good), "nothing was thrown");
}

TEST(LoaderState, JsonThereAndBack) {
  const LoaderState state{
      .epoch = 3, .position = 12, .seed = 18446744073709551615ULL, .batches = 40, .samples = 1000};
  EXPECT_EQ(LoaderState::from_json(state.to_json()), state);
  for (const char* text : {"", "[]", "{}", "{\"epoch\":1}", "{\"epoch\":\"x\"}", "\xff"}) {
    EXPECT_THROW((void)LoaderState::from_json(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace argosy::data
