// Each wrapper at its edges: no samples, any number of threads, cuts that do not divide, caches and
// shares too small for one sample.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/cache.h"
#include "argosy/data/concat.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/data_loader_test_support.h"
#include "argosy/data/map.h"
#include "argosy/data/subset.h"
#include "argosy/data/tensor_dataset.h"
#include "argosy/data/zip.h"

namespace argosy::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace argosy::data::loader_test;  // NOLINT(google-build-using-namespace)

/// Sample i: i, and a draw from its stream.
struct Drawn {
  int64_t n = 37;
  int64_t size() const { return n; }
  std::tuple<at::Tensor, int64_t> get(int64_t index, Random& random) const {
    return {torch::tensor({index, random.integer(0, 1'000'000'000)}), index};
  }
};

/// The same without a draw.
struct Plain {
  int64_t n = 37;
  int64_t size() const { return n; }
  std::tuple<at::Tensor, int64_t> get(int64_t index) const {
    return {torch::full({2}, index), index};
  }
};

const auto kTwice = [](const std::tuple<at::Tensor, int64_t>& sample, Random& random) {
  return std::tuple(std::get<0>(sample) * 2 + random.integer(0, 9), std::get<1>(sample));
};

/// use(name, set) for each wrapper over sets of n samples.
template <typename Use>
void with_each_wrapper(int64_t n, const Use& use) {
  const Drawn drawn{.n = n};
  const Plain plain{.n = n};
  const TensorDataset rows(torch::arange(3 * n).view({n, 3}), torch::arange(n));
  use("Map", Map(drawn, kTwice));
  use("Subset of samples", Subset(drawn, std::vector<int64_t>(static_cast<size_t>(n), n - 1)));
  use("Subset of batches", std::get<0>(random_split(rows, {0.3, 0.7}, {.seed = 4})));
  use("random_split", std::get<1>(random_split(drawn, {0.3, 0.7}, {.seed = 4})));
  use("Concat of samples", Concat(drawn, plain));
  use("Concat of batches", Concat(rows, rows));
  use("Zip of samples", Map(Zip(drawn, plain), [](const auto& fields) {
        return std::tuple(std::get<0>(fields), std::get<2>(fields));
      }));
  use("Zip of batches", Zip(rows, rows));
  use("Cache", Cache(plain));
  use("Cache below a Map", Map(Cache(plain), kTwice));
  use("TensorDataset", rows);
}

template <typename Set>
Epoch two_fields(const Set& set, int threads) {
  DataLoader loader(set, {.batch_size = 5, .shuffle = true, .num_workers = threads, .seed = 11});
  Epoch epoch;
  for (int round = 0; round < 2; ++round) {
    for (auto& batch : loader) {
      epoch.emplace_back(std::get<0>(batch), std::get<1>(batch));
    }
  }
  return epoch;
}

TEST(Wrappers, SameContentWithAnyNumberOfThreads) {
  with_each_wrapper(37, [](const char* name, const auto& set) {
    SCOPED_TRACE(name);
    const Epoch alone = two_fields(set, 0);
    EXPECT_GT(alone.size(), 1U);
    for (const int threads : {1, 8}) {
      expect_same(two_fields(set, threads), alone);
    }
  });
}

TEST(Wrappers, NoSamplesGiveNoBatches) {
  with_each_wrapper(0, [](const char* name, const auto& set) {
    SCOPED_TRACE(name);
    EXPECT_EQ(set.size(), 0);
    for (const int threads : {0, 1, 8}) {
      EXPECT_THAT(two_fields(set, threads), IsEmpty());
    }
    EXPECT_THAT(usage_error_of([&] { (void)Subset(set, {0}); }),
                HasSubstr("index 0 is outside the data set of 0 samples"));
  });
}

TEST(RandomSplit, PartsThatDoNotDivideLoseNothing) {
  for (const int64_t n : {0, 1, 2, 3, 10, 101}) {
    const auto parts = random_split(Plain{.n = n}, {1.0 / 3, 1.0 / 3, 1.0 / 3});
    EXPECT_EQ(parts[0].size() + parts[1].size() + parts[2].size(), n);
    EXPECT_LE(parts[0].size() - parts[2].size(), 1);
  }
  const auto all = random_split(Plain{}, {1.0, 0.0});
  EXPECT_EQ(all[0].size(), 37);
  EXPECT_EQ(all[1].size(), 0);
}

TEST(RandomSplit, PartsThatCannotBeAreNamed) {
  const Plain set;
  EXPECT_THAT(usage_error_of([&] {
                (void)random_split(set, {-0.5, 1.5});
              }),
              HasSubstr("[data.random_split] fractions must be from 0 to 1, got -0.5"));
  EXPECT_THAT(usage_error_of([&] {
                (void)random_split(set, {std::numeric_limits<double>::quiet_NaN(), 1.0});
              }),
              HasSubstr("fractions must be from 0 to 1, got nan"));
  EXPECT_THAT(usage_error_of([&] {
                (void)random_split(set, {38, -1});
              }),
              HasSubstr("sizes must not be negative, got -1"));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(usage_error_of([&] {
                (void)random_split(set, {kMost, kMost, int64_t{39}});
              }),
              HasSubstr("sizes must sum to the 37 samples of the data set"));
}

TEST(Cache, ALimitBelowOneSampleKeepsNothingAndGivesAll) {
  const Plain set;
  const Cache cache(set, {.max_bytes = 1});
  expect_same(two_fields(cache, 4), two_fields(set, 0));
  EXPECT_EQ(cache.stats().kept, 0);
  EXPECT_EQ(cache.stats().bytes, 0);
  EXPECT_EQ(cache.stats().hits, 0);
  EXPECT_TRUE(cache.stats().full);
  EXPECT_THAT(usage_error_of([&] { (void)Cache(set, {.max_bytes = 0}); }),
              HasSubstr("[data.Cache] max_bytes must be positive, got 0"));
  EXPECT_THAT(usage_error_of([&] { (void)cache.get(-1); }), HasSubstr("index -1 is outside"));
}

TEST(TensorDataset, ANegativeIndexIsNotCountedFromTheEnd) {
  const TensorDataset set(torch::arange(4));
  for (const int64_t index : {-1, 4}) {
    EXPECT_THAT(usage_error_of([&] { (void)set.get(index); }),
                HasSubstr("[data.TensorDataset] index " + std::to_string(index) +
                          " is outside the data set of 4 samples"));
  }
}

/// Three numbers, dealt to the shares.
struct Three {
  struct Stream {
    Pass pass;
    int64_t at = 0;
    std::optional<int64_t> next() {
      const int64_t i = pass.key(at++);
      return i < 3 ? std::optional(i) : std::nullopt;
    }
  };
  Stream stream(const Pass& pass) const { return {pass}; }
};

TEST(IterableDataset, MoreRanksAndStreamsThanSamplesLoseNothing) {
  for (const int per_rank : {1, 4}) {
    for (const int threads : {0, 2}) {
      std::vector<int64_t> seen;
      for (int rank = 0; rank < 8; ++rank) {
        DataLoader loader(Three(),
                          StreamShards{.num_replicas = 8, .rank = rank, .per_rank = per_rank},
                          {.batch_size = 2, .num_workers = threads});
        for (at::Tensor& batch : loader) {
          const auto* data = batch.data_ptr<int64_t>();
          seen.insert(seen.end(), data, data + batch.numel());
        }
      }
      EXPECT_THAT(seen, ElementsAre(0, 1, 2)) << per_rank << " streams, " << threads << " threads";
    }
  }
}

TEST(IterableDataset, ARankWithoutASampleCannotMakeABatchOfIt) {
  DataLoader loader(Three(),
                    StreamShards{.num_replicas = 8, .rank = 5, .batches = 1},
                    {.batch_size = 2, .num_workers = 2});
  EXPECT_THROW(
      {
        for ([[maybe_unused]] auto& batch : loader) {
        }
      },
      DataError);
}

}  // namespace
}  // namespace argosy::data
