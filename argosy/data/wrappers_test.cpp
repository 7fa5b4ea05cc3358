// Map, Concat, Zip, Cache: what they give, by the sample and by the batch; keys and errors.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
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
using namespace argosy::data::loader_test;  // NOLINT(google-build-using-namespace)

/// Sample i: i and a draw. The fast path gives the same.
struct NoisySet {
  int64_t n = 20;
  bool fails = false;
  int64_t size() const { return n; }
  std::pair<int64_t, int64_t> get(int64_t index, Random& random) const {
    check(index);
    return {index, random.integer(0, 1'000'000'000)};
  }

 protected:
  void check(int64_t index) const {
    if (fails && index == 3) {
      throw DataError("test", "torn", {.path = "", .index = index});
    }
  }
};

struct FastNoise : NoisySet {
  std::pair<at::Tensor, at::Tensor> get_batch(std::span<const int64_t> indices,
                                              const BatchContext& context) const {
    std::vector<int64_t> first;
    std::vector<int64_t> second;
    for (const int64_t index : indices) {
      check(index);
      Random random = context.random(index);
      const auto sample = get(index, random);
      first.push_back(sample.first);
      second.push_back(sample.second);
    }
    return {torch::tensor(first), torch::tensor(second)};
  }
};

struct Words {
  int64_t size() const { return 3; }
  std::string get(int64_t index) const { return std::string(index, 'x'); }
};

at::Tensor all_draws(const auto& set) {
  DataLoader loader(set, {.batch_size = set.size(), .seed = 3});
  return std::get<1>(*loader.begin()).clone();
}

TEST(Map, TheFunctionRunsWhenASampleIsAskedForAndNotBefore) {
  std::atomic<int> calls{0};
  const Map lengths(Words(), [&](const std::string& word) {
    ++calls;
    return static_cast<int64_t>(word.size());
  });
  static_assert(!GetsRandomSample<decltype(lengths)>);
  EXPECT_EQ(lengths.size(), 3);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(lengths.get(2), 2);
  EXPECT_EQ(calls, 1);
  DataLoader loader(lengths, {.batch_size = 3, .num_workers = 2});
  EXPECT_TRUE(at::equal(*loader.begin(), torch::tensor({0, 1, 2}, torch::kLong)));
}

TEST(Map, DrawsFromTheSamplesStreamBehindTheSet) {
  const NoisySet noise;
  const Map doubled(noise,
                    [](std::pair<int64_t, int64_t> s) { return std::pair(s.first, 2 * s.second); });
  EXPECT_TRUE(at::equal(all_draws(doubled), 2 * all_draws(noise)));
  const auto draw = [](auto sample, Random& random) {
    return std::tuple(0, random.integer(0, 1'000'000'000), sample);
  };
  const Map of_plain(Words(), [](const std::string&, Random& random) {
    return std::pair(0, random.integer(0, 1'000'000'000));
  });
  static_assert(!GetsSample<decltype(of_plain)> && GetsRandomSample<decltype(of_plain)>);
  EXPECT_TRUE(at::equal(all_draws(of_plain), all_draws(noise).slice(0, 0, 3)));  // the first draws
  const Map of_random(noise, draw);
  EXPECT_FALSE(at::equal(all_draws(of_random), all_draws(noise)));  // the second ones
  // A view changes neither, and loader threads do not.
  const Map of_subset(Subset(noise, {7, 5}), draw);
  EXPECT_TRUE(
      at::equal(all_draws(of_subset), all_draws(of_random).index_select(0, torch::tensor({7, 5}))));
}

TEST(Map, WhatTheFunctionThrowsNamesTheSampleInTheWholeSet) {
  const Map map(Subset(Words(), {0, 2}), [](const std::string& word) {
    if (word.size() == 2) {
      throw std::runtime_error("too long");
    }
    return 0;
  });
  EXPECT_EQ(data_error_of(DataLoader(map, {.batch_size = 2})),
            "[data.DataLoader] get() threw: too long (batch 0 of epoch 0) (sample 2)");
}

TEST(Concat, CountsSamplesOneSetAfterAnother) {
  const TensorDataset a(torch::arange(4));
  const TensorDataset b(torch::arange(10, 13));
  const Concat all(a, b);
  EXPECT_EQ(all.size(), 7);
  EXPECT_EQ(all.get(3)[0].item<int64_t>(), 3);
  EXPECT_EQ(all.get(4)[0].item<int64_t>(), 10);
  EXPECT_EQ(all.get(6)[0].item<int64_t>(), 12);
  EXPECT_THAT(usage_error_of([&] { (void)all.get(7); }),
              HasSubstr("index 7 is outside the data set of 7 samples"));
  EXPECT_THAT(usage_error_of([&] { (void)all.get(-1); }), HasSubstr("index -1"));
  std::vector<TensorDataset<1>> shards(5, a);
  EXPECT_EQ(Concat(std::move(shards)).size(), 20);
  EXPECT_EQ(Concat(std::vector<Words>()).size(), 0);
}

TEST(Concat, ABatchAcrossSetsKeepsItsOrder) {
  const TensorDataset a(torch::arange(8).view({4, 2}), torch::arange(4));
  const TensorDataset b(torch::arange(100, 106).view({3, 2}), torch::arange(10, 13));
  const Concat all(
      a, TensorDataset(torch::empty({0, 2}, torch::kLong), torch::empty({0}, torch::kLong)), b);
  const Sampler order(7, [](int64_t) { return std::vector<int64_t>{5, 0, 6, 3, 4, 1, 2}; });
  for (const int64_t batch_size : {1, 3, 7}) {
    DataLoader fast(all, order, {.batch_size = batch_size, .num_workers = 2});
    DataLoader slow(
        all, order, {.batch_size = batch_size}, [](const auto& s, const BatchContext& c) {
          return DefaultCollate()(s, c);
        });
    std::vector<at::Tensor> y;
    auto it = slow.begin();
    for (auto& [x, label] : fast) {
      EXPECT_TRUE(at::equal(x, std::get<0>(*it)));
      y.push_back(label);
      ++it;
    }
    EXPECT_TRUE(at::equal(at::cat(y), torch::tensor({11, 0, 12, 3, 10, 1, 2}, torch::kLong)));
    fast.set_epoch(0);
  }
}

// Random streams and errors count in the sets that hold the data, by both paths.
TEST(Concat, KeysAreThoseOfTheWholeSetsOneAfterAnother) {
  const FastNoise a{{.n = 5}};
  const FastNoise b{{.n = 20}};
  const Subset some(b, {7, 11});
  const Concat all(a, some, b);
  EXPECT_EQ(all.size(), 27);
  EXPECT_EQ(all.key_space(), 45);
  EXPECT_EQ(all.sample_key(4), 4);
  EXPECT_EQ(all.sample_key(6), 5 + 11);
  EXPECT_EQ(all.sample_key(7), 25);
  const NoisySet counted{.n = 45};
  const at::Tensor expected = all_draws(counted);
  const at::Tensor by_batch = all_draws(all);
  const Concat slow(NoisySet{.n = 5}, Subset(NoisySet{.n = 20}, {7, 11}), NoisySet{.n = 20});
  static_assert(!GetsBatch<decltype(slow)> && GetsBatch<decltype(all)>);
  EXPECT_TRUE(at::equal(all_draws(slow), by_batch));
  for (int64_t i = 0; i < 27; ++i) {
    EXPECT_EQ(by_batch[i].item<int64_t>(), expected[all.sample_key(i)].item<int64_t>()) << i;
  }
  // One inside another: nothing is added twice.
  const Concat nested(NoisySet{.n = 5}, Concat(NoisySet{.n = 20}, NoisySet{.n = 20}));
  EXPECT_TRUE(at::equal(all_draws(nested), all_draws(counted)));
}

TEST(Concat, ErrorsOfAPartCountInTheWhole) {
  const NoisySet good;
  EXPECT_THAT(data_error_of(DataLoader(Concat(good, NoisySet{.fails = true}), {.batch_size = 2})),
              HasSubstr("torn (sample 23)"));
  const Concat fast(FastNoise{{.n = 6}}, FastNoise{{.n = 6}}, FastNoise{{.n = 5, .fails = true}});
  EXPECT_THAT(data_error_of(DataLoader(fast, {.batch_size = 17})), HasSubstr("torn (sample 15)"));
}

TEST(Concat, SetsOfOtherShapesAreRefusedByName) {
  const Concat wrong(TensorDataset(torch::rand({2, 3})), TensorDataset(torch::rand({2, 4})));
  EXPECT_EQ(data_error_of(DataLoader(wrong, {.batch_size = 4})),
            "[data.Concat] expected samples of shape [3] of Float, as in the first of the batch, "
            "got [4] of Float from another set. Put a Map before it (sample 2)");
}

TEST(Zip, PutsTheFieldsSideBySide) {
  struct Point {
    double x;
    int64_t id;
  };
  struct Points {
    int64_t size() const { return 3; }
    Point get(int64_t i) const { return {0.5 * static_cast<double>(i), i}; }
  };
  const TensorDataset images(torch::arange(6).view({3, 2}), torch::arange(3));
  const Zip all(Words(), images, Points());
  const auto [word, image, label, x, id] = all.get(2);
  EXPECT_EQ(word, "xx");
  EXPECT_TRUE(at::equal(image, torch::tensor({4, 5}, torch::kLong)));
  EXPECT_EQ(label.item<int64_t>() + id, 4);
  EXPECT_EQ(x, 1.0);
  const Zip fast(images, TensorDataset(torch::arange(3) * 10));
  static_assert(GetsBatch<decltype(fast)> && !GetsBatch<decltype(all)>);
  for (auto& [a, b, c] : DataLoader(fast, {.batch_size = 3})) {
    EXPECT_TRUE(at::equal(b * 10, c));
    EXPECT_EQ(a.size(0), 3);
  }
  EXPECT_EQ(usage_error_of([&] { Zip(images, Words(), NoisySet()); }),
            "[data.Zip] expected equally many samples, got 3 in set 0 and 20 in set 2");
}

TEST(Zip, PartsThatDrawDrawAlikeAndByTheKeyOfTheFirst) {
  const NoisySet noise;
  const Zip both(Subset(noise, {4, 9}), Subset(noise, {1, 2}), Subset(FastNoise(), {4, 9}));
  static_assert(!GetsBatch<decltype(both)>);
  DataLoader loader(both, {.batch_size = 2, .seed = 3});
  const auto [i, a, j, b, k, c] = *loader.begin();
  EXPECT_TRUE(at::equal(a, b));
  EXPECT_TRUE(at::equal(a, c));
  EXPECT_TRUE(at::equal(a, all_draws(noise).index_select(0, torch::tensor({4, 9}))));
  EXPECT_TRUE(at::equal(j, torch::tensor({1, 2}, torch::kLong)));
}

/// Counts how often each sample was made.
struct Costly {
  std::vector<std::atomic<int>>* made;
  int64_t size() const { return static_cast<int64_t>(made->size()); }
  std::tuple<at::Tensor, std::vector<float>, int64_t> get(int64_t index) const {
    ++(*made)[index];
    return {torch::full({100}, static_cast<float>(index)), std::vector<float>(10), index};
  }
};

TEST(Cache, MakesEachSampleOnceOverEpochsAndThreads) {
  std::vector<std::atomic<int>> made(50);
  const Cache cache(Costly{&made});
  const Map firsts(cache, [](const auto& sample, Random& random) {
    return std::pair(std::get<0>(sample) + random.integer(0, 1), std::get<2>(sample));
  });
  DataLoader loader(firsts, {.batch_size = 7, .shuffle = true, .num_workers = 4});
  for (int epoch = 0; epoch < 3; ++epoch) {
    int64_t samples = 0;
    for (auto& [x, i] : loader) {
      EXPECT_LE((x.select(1, 5) - i).abs().max().item<float>(), 1);
      samples += i.size(0);
    }
    EXPECT_EQ(samples, 50);
  }
  EXPECT_TRUE(std::all_of(made.begin(), made.end(), [](const auto& count) { return count == 1; }));
  EXPECT_EQ(cache.stats().hits, 100);
  EXPECT_EQ(cache.stats().misses, 50);
  // 400 bytes of floats, 40 of the vector, the tensor's book-keeping, and the sample itself.
  EXPECT_EQ(cache.stats().bytes,
            50 * static_cast<int64_t>(400 + 40 + detail::kTensorBytes + sizeof(cache.get(0))));
}

/// As the sets of pictures are: both forms, whatever the transform.
struct Both : Words {
  using Words::get;
  std::string get(int64_t index, Random& /*random*/) const { return get(index) + "!"; }
};

TEST(Cache, KeepsWhatASetGivesWithoutAStream) {
  const Cache cache(Both{});
  EXPECT_EQ(cache.get(2), "xx");
  EXPECT_EQ(cache.get(2), "xx");
  EXPECT_EQ(cache.stats().hits, 1);
}

TEST(DatasetRef, ASharedPointerIsSharedByWhateverHoldsIt) {
  auto words = std::make_shared<Words>();
  const std::weak_ptr<const Words> alive = words;
  {
    const std::shared_ptr<const Words> constant = words;
    const Subset last(words, {2});
    const Map lengths(constant, [](const std::string& word) { return std::ssize(word); });
    const Concat twice(words, constant);
    const Cache cache(words);
    const Zip pairs(words, constant);
    auto [some, rest] = random_split(words, {1, 2});
    const DataLoader loader(std::make_shared<NoisySet>(), {.batch_size = 4});
    words.reset();
    EXPECT_EQ(last.get(0), "xx");
    EXPECT_EQ(lengths.get(1), 1);
    EXPECT_EQ(twice.get(5), "xx");
    EXPECT_EQ(cache.get(2), "xx");
    EXPECT_EQ(std::get<1>(pairs.get(2)), "xx");
    EXPECT_EQ(some.size() + rest.size(), 3);
    EXPECT_EQ(loader.size(), 5);
  }
  EXPECT_TRUE(alive.expired());
}

TEST(Cache, StopsKeepingAtItsLimit) {
  std::vector<std::atomic<int>> made(50);
  const Cache cache(Costly{&made}, {.max_bytes = 10'000}, [](const auto&) { return 1000; });
  for (int round = 0; round < 2; ++round) {
    for (int64_t i = 0; i < 50; ++i) {
      EXPECT_EQ(std::get<2>(cache.get(i)), i);
    }
  }
  EXPECT_EQ(cache.stats().kept, 10);
  EXPECT_EQ(cache.stats().hits, 10);
  EXPECT_TRUE(cache.stats().full);
  EXPECT_EQ(made[9], 1);
  EXPECT_EQ(made[10], 2);
}

TEST(Cache, AWriteIntoAKeptSampleIsFound) {
  std::vector<std::atomic<int>> made(5);
  const Cache cache(Subset(Costly{&made}, {4, 2}));
  (void)(std::get<0>(cache.get(1)) * 2);
  std::get<0>(cache.get(1)).clone().mul_(2);
  EXPECT_EQ(std::get<0>(cache.get(1))[0].item<float>(), 2);
  std::get<0>(cache.get(1)).slice(0, 3, 5).mul_(2);  // a view is the same memory
  EXPECT_THAT(usage_error_of([&] { (void)cache.get(1); }),
              HasSubstr("[data.Cache] sample 2 was written to in place"));
}

TEST(Subset, AnIndexOutsideIsAUsageError) {
  const Words words;
  const Subset some(words, {2, 1});
  EXPECT_EQ(usage_error_of([&] { (void)some.get(2); }),
            "[data.Subset] index 2 is outside the data set of 2 samples");
  EXPECT_THROW((void)some.get(-1), UsageError);
}

}  // namespace
}  // namespace argosy::data
