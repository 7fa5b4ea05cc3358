// Loaders of streams: every sample once over ranks and threads, and in the same order.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/data_loader_test_support.h"
#include "argosy/data/map.h"

namespace argosy::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace argosy::data::loader_test;  // NOLINT(google-build-using-namespace)

/// The numbers below n, in an order that changes with the epoch; share s has each shards-th.
struct Counter {
  int64_t n = 47;
  int64_t bad = -1;     // its next() throws a DataError
  int64_t broken = -1;  // and this one's something else

  struct Stream;
  Stream stream(const Pass& pass) const;
};

struct Counter::Stream {
  Counter counter;
  Pass pass;
  int64_t at = 0;

  std::optional<int64_t> next() {
    const int64_t i = pass.key(at);
    if (i >= counter.n) {
      return std::nullopt;
    }
    ++at;
    if (i == counter.bad) {
      throw DataError("test", "torn record", {.path = "a.tar", .offset = 512});
    }
    if (i == counter.broken) {
      throw std::runtime_error("no such host");
    }
    return (i + pass.epoch) % counter.n;
  }
};

Counter::Stream Counter::stream(const Pass& pass) const {
  return {*this, pass};
}

/// The same with work outside the turn: a draw.
struct Drawing : Counter {
  std::pair<int64_t, double> get(int64_t item, Random& random) const {
    if (item == 30) {
      throw_if_asked();
    }
    return {item, random.uniform()};
  }
  bool fails = false;
  void throw_if_asked() const {
    if (fails) {
      throw DataError("vision.jpeg", "not a JPEG file");
    }
  }
};
static_assert(IterableDataset<Counter> && !Dataset<Counter> && !IterableDataset<Augmented>);

std::vector<std::vector<int64_t>> batches_of(auto& loader) {
  std::vector<std::vector<int64_t>> batches;
  for (at::Tensor& batch : loader) {
    const auto* data = batch.template data_ptr<int64_t>();
    batches.emplace_back(data, data + batch.numel());
  }
  return batches;
}

TEST(StreamLoader, BatchesComeInTheStreamsOrderTheLastOneShort) {
  DataLoader loader(Counter{.n = 5}, {.batch_size = 2, .num_workers = 2});
  EXPECT_THAT(batches_of(loader),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_THAT(batches_of(loader),
              ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4), ElementsAre(0)));
  EXPECT_EQ(loader.epoch(), 2);
  EXPECT_EQ(loader.stats().samples, 5);
  EXPECT_EQ(loader.stats().batches, 3);
  DataLoader dropping(Counter{.n = 5}, {.batch_size = 2, .drop_last = true});
  EXPECT_EQ(batches_of(dropping).size(), 2U);
  DataLoader none(Counter{.n = 0}, {.num_workers = 2});
  EXPECT_TRUE(batches_of(none).empty());
}

TEST(StreamLoader, SameBitsWithAnyNumberOfThreads) {
  const Drawing set;
  for (const int per_rank : {1, 3}) {
    const StreamShards shards{.num_replicas = 2, .rank = 1, .per_rank = per_rank};
    DataLoader alone(set, shards, {.batch_size = 4, .seed = 5});
    const Epoch first = run_epoch(alone);
    const Epoch second = run_epoch(alone);
    EXPECT_FALSE(at::equal(std::get<1>(first[0]), std::get<1>(second[0])));
    for (const int threads : {1, 2, 8}) {
      DataLoader loader(set, shards, {.batch_size = 4, .num_workers = threads, .seed = 5});
      expect_same(run_epoch(loader), first);
      expect_same(run_epoch(loader), second);
    }
  }
}

TEST(StreamLoader, EverySampleOnceOverRanksAndTheirStreams) {
  const Drawing set;
  DataLoader whole(set, {.batch_size = 47, .seed = 5});
  const at::Tensor draws = std::get<1>(*whole.begin()).clone();
  for (const int ranks : {1, 3, 60}) {
    for (const int per_rank : {1, 2, 5}) {
      std::vector<int> seen(47, 0);
      for (int rank = 0; rank < ranks; ++rank) {
        DataLoader loader(set,
                          StreamShards{.num_replicas = ranks, .rank = rank, .per_rank = per_rank},
                          {.batch_size = 4, .num_workers = rank < 3 ? rank : 0, .seed = 5});
        for (auto& [items, values] : loader) {
          for (int64_t i = 0; i < items.size(0); ++i) {
            const auto item = items[i].item<int64_t>();
            ++seen[item];
            // Dealt out by remainder, a sample draws the same in every division.
            EXPECT_EQ(values[i].item<double>(), draws[item].item<double>());
          }
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 47);
    }
  }
}

TEST(StreamLoader, WithBatchesEveryRankHasEquallyManyFullOnes) {
  for (int rank = 0; rank < 3; ++rank) {
    // Shares of 2, 2 and 1 samples, and 4 batches of 3 asked for.
    DataLoader loader(Counter{.n = 5},
                      StreamShards{.num_replicas = 3, .rank = rank, .batches = 4},
                      {.batch_size = 3, .num_workers = rank});
    EXPECT_EQ(loader.size(), 4);
    const auto batches = batches_of(loader);
    ASSERT_EQ(batches.size(), 4U);
    for (const auto& batch : batches) {
      EXPECT_EQ(batch.size(), 3U);
    }
    if (rank == 1) {
      EXPECT_THAT(batches[0], ElementsAre(1, 4, 1));
      EXPECT_THAT(batches[1], ElementsAre(4, 1, 4));
    }
  }
  DataLoader short_epoch(Counter{.n = 100}, StreamShards{.batches = 2}, {.batch_size = 3});
  EXPECT_THAT(batches_of(short_epoch), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
}

TEST(StreamLoader, ResumesAtEveryPlace) {
  const Drawing set{{.n = 23}};
  for (const std::optional<int64_t> batches :
       {std::optional<int64_t>(), std::optional<int64_t>(9)}) {
    const StreamShards shards{.num_replicas = 2, .rank = 1, .per_rank = 2, .batches = batches};
    const auto make = [&](int threads) {
      return DataLoader(set, shards, {.batch_size = 2, .num_workers = threads, .seed = 5});
    };
    auto uninterrupted = make(0);
    uninterrupted.set_epoch(2);
    const Epoch second = run_epoch(uninterrupted);
    const Epoch third = run_epoch(uninterrupted);
    ASSERT_GE(second.size(), 6U);
    for (size_t place = 1; place < second.size(); ++place) {
      auto interrupted = make(2);
      interrupted.set_epoch(2);
      size_t count = 0;
      for ([[maybe_unused]] auto& batch : interrupted) {
        if (++count == place) {
          break;
        }
      }
      auto resumed = make(place % 2 == 0 ? 0 : 2);
      resumed.load_state(LoaderState::from_json(interrupted.state().to_json()));
      expect_same(run_epoch(resumed),
                  Epoch(second.begin() + static_cast<int64_t>(place), second.end()));
      expect_same(run_epoch(resumed), third);
    }
  }
}

/// A process with several virtual ranks has the batches of each, in updates of two.
struct DealtStream {
  int processes = 1;
  int per_rank = 1;
  std::optional<LoaderState> from{};
  int64_t updates = 3;  ///< then the loop is left
  LoaderState state{};  ///< where it is then, on any process

  static constexpr int64_t kVirtualRanks = 6;
  static constexpr int64_t kBatches = 5;

  /// The batches of each virtual rank, by updates.
  std::vector<std::vector<std::vector<int64_t>>> run() {
    std::vector<std::vector<std::vector<int64_t>>> all(kVirtualRanks);
    for (int rank = 0; rank < processes; ++rank) {
      DataLoader loader(Counter{.n = 100},
                        StreamShards{.num_replicas = processes,
                                     .rank = rank,
                                     .per_rank = per_rank,
                                     .batches = kBatches,
                                     .virtual_ranks = kVirtualRanks,
                                     .micro_batches = 2},
                        {.batch_size = 4, .num_workers = 2});
      const BatchTurns turns = loader.turns();
      EXPECT_EQ(loader.size(), kBatches * turns.leaves);
      if (from.has_value()) {
        loader.load_state(*from);
      }
      int64_t done = from.has_value() ? from->position : 0;  // batches of each virtual rank
      auto it = loader.begin();
      for (int64_t update = 0; update < updates && !(it == loader.end()); ++update) {
        const int64_t micros = std::min<int64_t>(2, kBatches - done);
        for (int64_t pass = 0; pass < micros * turns.leaves; ++pass) {
          const at::Tensor batch = *it;
          all[static_cast<size_t>(turns.first + pass / micros)].emplace_back(
              batch.data_ptr<int64_t>(), batch.data_ptr<int64_t>() + batch.numel());
          if (pass + 1 < micros * turns.leaves) {
            ++it;
          }
        }
        done += micros;
        state = loader.state();
        ++it;
      }
    }
    return all;
  }
};

TEST(StreamLoader, VirtualRanksHaveTheSameBatchesOnAnyNumberOfProcesses) {
  for (const int per_rank : {1, 2, 3}) {
    DealtStream one_each{.processes = 6, .per_rank = per_rank};
    const auto expected = one_each.run();
    EXPECT_EQ(expected[0].size(), 5U);
    EXPECT_NE(expected[0], expected[1]);
    for (const int processes : {1, 2, 3, 4, 5}) {
      DealtStream dealt{.processes = processes, .per_rank = per_rank};
      EXPECT_EQ(dealt.run(), expected) << processes << " processes, per_rank " << per_rank;
    }
  }
}

TEST(StreamLoader, VirtualRanksResumeOnAnotherNumberOfProcesses) {
  const auto whole = DealtStream{.processes = 6, .per_rank = 2}.run();
  for (const int64_t updates : {1, 2}) {
    for (const auto& [before, after] : {std::pair(1, 4), {4, 1}, {3, 2}, {6, 5}, {2, 6}}) {
      DealtStream first{.processes = before, .per_rank = 2, .updates = updates};
      auto seen = first.run();
      EXPECT_EQ(first.state.position, 2 * updates);
      DealtStream rest{.processes = after, .per_rank = 2, .from = first.state};
      const auto later = rest.run();
      for (size_t i = 0; i < seen.size(); ++i) {
        seen[i].insert(seen[i].end(), later[i].begin(), later[i].end());
      }
      EXPECT_EQ(seen, whole) << updates << " updates, from " << before << " to " << after;
    }
  }
}

TEST(StreamLoader, VirtualRanksNeedEquallyManyBatches) {
  const auto refusal = [](const StreamShards& shards) {
    return usage_error_of([&] { DataLoader loader(Counter{}, shards); });
  };
  EXPECT_THAT(refusal({.num_replicas = 2, .virtual_ranks = 4}),
              HasSubstr("4 virtual ranks on 2 ranks need .batches"));
  EXPECT_THAT(refusal({.num_replicas = 2, .virtual_ranks = 1}),
              HasSubstr("1 virtual ranks on 2 ranks need .batches"));
  EXPECT_THAT(refusal({.batches = 3, .virtual_ranks = -1}),
              HasSubstr("virtual_ranks must not be negative, got -1"));
  EXPECT_THAT(refusal({.batches = 3, .micro_batches = 0}), HasSubstr("micro_batches"));
}

TEST(StreamLoader, AStateOfOtherSharesIsRefused) {
  const Counter set;
  DataLoader saved(set, StreamShards{.num_replicas = 2}, {.batch_size = 3});
  DataLoader other(set, StreamShards{.num_replicas = 2, .rank = 1}, {.batch_size = 3});
  DataLoader larger(set, StreamShards{.num_replicas = 2}, {.batch_size = 4});
  EXPECT_NO_THROW(saved.load_state(saved.state()));
  EXPECT_THROW(other.load_state(saved.state()), UsageError);
  EXPECT_THROW(larger.load_state(saved.state()), UsageError);
  DataLoader counted(set, StreamShards{.batches = 3});
  LoaderState state = counted.state();
  state.position = 4;
  EXPECT_THAT(usage_error_of([&] { counted.load_state(state); }),
              HasSubstr("position 4 lies behind the 3 batches"));
}

TEST(StreamLoader, ErrorsComeInTheirPlaceWithTheSample) {
  for (const int threads : {0, 1, 2, 8}) {
    for (int kind = 0; kind < 3; ++kind) {
      DataLoader loader(
          Drawing{{.n = 47, .bad = kind == 0 ? 30 : -1, .broken = kind == 1 ? 30 : -1}, kind == 2},
          {.batch_size = 4, .num_workers = threads});
      int64_t seen = 0;
      try {
        for (auto& [items, values] : loader) {
          seen += items.size(0);
        }
        FAIL() << "nothing was thrown";
      } catch (const DataError& error) {
        EXPECT_EQ(error.place().index, 30);
        EXPECT_THAT(error.what(),
                    HasSubstr(kind == 0   ? "[test] a.tar: torn record (sample 30) (at byte 512)"
                              : kind == 1 ? "[data.DataLoader] the stream threw: no such host "
                                            "(batch 7 of epoch 0) (sample 30)"
                                          : "[vision.jpeg] not a JPEG file (sample 30)"));
      }
      EXPECT_EQ(seen, 28);
      EXPECT_EQ(loader.state().position, 7);
    }
  }
  struct Closed {
    Counter::Stream stream(const Pass&) const { throw std::runtime_error("no such file"); }
  };
  DataLoader closed(Closed(), {.num_workers = 1});
  try {
    (void)closed.begin();
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "[data.DataLoader] the stream threw: no such file (batch 0 of epoch 0)");
  }
}

TEST(StreamLoader, SkippedSamplesShortenTheirBatches) {
  for (const int threads : {0, 2}) {
    DataLoader loader(Drawing{{.n = 47, .bad = 5}, true},
                      {.batch_size = 4, .num_workers = threads, .on_error = OnError::kSkip});
    std::vector<int64_t> sizes;
    for (auto& [items, values] : loader) {
      sizes.push_back(items.size(0));
    }
    EXPECT_THAT(sizes, ElementsAre(4, 3, 4, 4, 4, 4, 4, 3, 4, 4, 4, 3));
    EXPECT_EQ(loader.stats().bad.skipped, 2);
    EXPECT_THAT(loader.stats().bad.messages,
                ElementsAre("[test] a.tar: torn record (sample 5) (at byte 512)",
                            "[vision.jpeg] not a JPEG file (sample 30)"));
  }
}

TEST(StreamLoader, WhatNeedsIndicesIsRefused) {
  const Counter set;
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.shuffle = true}); }),
              HasSubstr("shuffle with a stream"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, SequenceSampler(3)); }),
              HasSubstr("a sampler for a stream"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, DistributedBatchSampler(3)); }),
              HasSubstr("a sampler for a stream"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.on_error = OnError::kReplace}); }),
              HasSubstr("on_error = replace with a stream"));
  EXPECT_THAT(usage_error_of([&] { (void)DataLoader(set).size(); }),
              HasSubstr("its length is not known before its end"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, {.batch_size = 0}); }),
              HasSubstr("batch_size must be positive"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, StreamShards{.num_replicas = 2, .rank = 2}); }),
              HasSubstr("rank must be from 0 to 1"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, StreamShards{.per_rank = 0}); }),
              HasSubstr("per_rank must be positive"));
  EXPECT_THAT(usage_error_of([&] { DataLoader(set, StreamShards{.batches = 0}); }),
              HasSubstr("batches must be positive"));
  DataLoader empty(Counter{.n = 1}, StreamShards{.num_replicas = 2, .rank = 1, .batches = 3});
  EXPECT_THROW((void)empty.begin(), DataError);
}

TEST(StreamLoader, AMapRunsOutsideTheTurns) {
  std::atomic<int> inside{0};
  std::atomic<bool> together{false};
  const Map map(Counter{.n = 64}, [&](int64_t item) {
    ++inside;
    for (int i = 0; i < 2000 && !together; ++i) {  // until another is here too
      together = together || inside > 1;
      std::this_thread::yield();
    }
    --inside;
    return 2 * item;
  });
  DataLoader loader(map, {.batch_size = 4, .num_workers = 4});
  int64_t expected = 0;
  for (const auto& batch : batches_of(loader)) {
    for (const int64_t item : batch) {
      EXPECT_EQ(item, 2 * expected++);
    }
  }
  EXPECT_EQ(expected, 64);
  EXPECT_TRUE(together);
}

TEST(StreamLoader, BrokenOffAHundredTimes) {
  const Counter set{.n = 100};
  DataLoader loader(set, StreamShards{.per_rank = 2}, {.batch_size = 2, .num_workers = 3});
  for (int round = 0; round < 100; ++round) {
    int64_t count = 0;
    for ([[maybe_unused]] auto& batch : loader) {
      if (++count > round % 4) {
        break;
      }
    }
  }
  EXPECT_EQ(loader.epoch(), 100);
  EXPECT_EQ(batches_of(loader).size(), 50U);
}

}  // namespace
}  // namespace argosy::data
