/// Who is in which lane, and types that lose nothing between the steps; tests/conformance has the
/// rest.
#include "argosy/transport/hierarchical/hierarchical.h"

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/store.h"
#include "argosy/transport/hierarchical/layout.h"
#include "argosy/transport/hierarchical/wide.h"
#include "argosy/transport/reduce.h"

#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::transport {
namespace {

using ::testing::ElementsAre;

constexpr auto kPatience = std::chrono::seconds(30);

TEST(HostLayout, LanesJoinEqualPlaces) {
  const HostLayout layout = lay_out({7, 7, 3, 3});
  EXPECT_EQ(layout.hosts(), 2);
  EXPECT_EQ(layout.lanes, 2);
  EXPECT_THAT(layout.neighbours(3), ElementsAre(2, 3));
  EXPECT_THAT(layout.lane(1), ElementsAre(1, 3));
}

TEST(HostLayout, HostsAreOrderedByTheirFirstRankAndMayMix) {
  const HostLayout layout = lay_out({9, 1, 9, 9, 1});
  EXPECT_THAT(layout.members, ElementsAre(ElementsAre(0, 2, 3), ElementsAre(1, 4)));
  EXPECT_THAT(layout.host, ElementsAre(0, 1, 0, 0, 1));
  EXPECT_THAT(layout.place, ElementsAre(0, 0, 1, 2, 1));
  EXPECT_EQ(layout.lanes, 2);
  EXPECT_THAT(layout.lane(1), ElementsAre(2, 4));
}

TEST(HostLayout, TheSmallestHostLimitsTheLanes) {
  EXPECT_EQ(lay_out({0, 0, 0, 1}).lanes, 1);
  EXPECT_EQ(lay_out({0, 1, 2}).lanes, 1);
}

TEST(Hierarchical, DifferentOperationsOnOneHostAreToldToAll) {
  const auto store = rendezvous::in_process_store();
  const auto outcomes = test::try_run_ranks(
      4,
      [&](int rank) {
        const auto t = make_hierarchical(store, rank, 4, {.hosts = {0, 0, 1, 1}});
        std::vector<float> values(100);
        if (rank == 1) {
          t->broadcast(values.data(), 50, DType::kF32, 0, std::chrono::seconds(20));
        } else {
          t->all_reduce(values.data(), 100, DType::kF32, ReduceOp::kSum, std::chrono::seconds(20));
        }
      },
      {.mode = test::RankMode::kThreads});
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.error, ::testing::HasSubstr(" called ")) << describe(outcome);
    EXPECT_THAT(outcome.peers, ::testing::IsEmpty()) << describe(outcome);
  }
}

constexpr int64_t kManyBlocks = 5'000'003;  // f32, of 8 MiB each
const std::vector<int> kTwoHosts{0, 0, 0, 1, 1};

/// Numbers of very different size, for which every other order of the sum gives other bits.
float value_of(int rank, int64_t i) {
  const auto mixed =
      (static_cast<uint64_t>(i) * 2654435761U + static_cast<uint64_t>(rank) * 40503U) & 0xFFFF;
  const float sign = (i + rank) % 3 == 0 ? -1.0F : 1.0F;
  return sign *
         std::ldexp(static_cast<float>(mixed), static_cast<int>((i * 7 + rank * 5) % 31) - 15);
}

/// The order of a sum: the tree over the ranks, wherever they are.
float sum_over(int first, int ranks, int64_t i) {
  if (ranks == 1) {
    return value_of(first, i);
  }
  int half = 1;
  while (half * 2 < ranks) {
    half *= 2;
  }
  return sum_over(first, half, i) + sum_over(first + half, ranks - half, i);
}

TEST(Hierarchical, TheSpreadOverHostsDoesNotChangeABit) {
  const std::vector<std::vector<int>> spreads{kTwoHosts,
                                              {0, 0, 1},
                                              {0, 0, 0, 1},
                                              {0, 1, 0, 1},
                                              {0, 0, 1, 1},
                                              {0, 1, 2, 2},
                                              {1, 1, 0, 0, 0, 0, 0},
                                              {0, 0, 0, 1, 1, 1, 1, 1}};
  for (const std::vector<int>& hosts : spreads) {
    SCOPED_TRACE(::testing::PrintToString(hosts));
    const auto store = rendezvous::in_process_store();
    const int size = static_cast<int>(hosts.size());
    const int64_t count = size < 6 ? kManyBlocks : kManyBlocks / 10;
    test::run_ranks(size,
                    [&](int rank) {
                      const auto t = make_hierarchical(store, rank, size, {.hosts = hosts});
                      std::vector<float> values(static_cast<size_t>(count));
                      for (int round = 0; round < 2; ++round) {
                        for (int64_t i = 0; i < count; ++i) {
                          values[static_cast<size_t>(i)] = value_of(rank, i);
                        }
                        t->all_reduce(values.data(), count, DType::kF32, ReduceOp::kSum, kPatience);
                        int64_t wrong = 0;
                        for (int64_t i = 0; i < count; ++i) {
                          wrong += values[static_cast<size_t>(i)] == sum_over(0, size, i) ? 0 : 1;
                        }
                        EXPECT_EQ(wrong, 0);
                      }
                    },
                    {.mode = test::RankMode::kThreads});
  }
}

TEST(Hierarchical, ManyBlocksOf16BitFloatsAreAveraged) {
  constexpr std::array<uint16_t, 5> kOneToFive{0x3C00, 0x4000, 0x4200, 0x4400, 0x4500};  // f16
  const auto store = rendezvous::in_process_store();
  test::run_ranks(5,
                  [&](int rank) {
                    const auto t = make_hierarchical(store, rank, 5, {.hosts = kTwoHosts});
                    std::vector<uint16_t> values(kManyBlocks);
                    for (size_t i = 0; i < values.size(); i += 3) {
                      values[i] = kOneToFive[static_cast<size_t>(rank)];
                    }
                    t->all_reduce(
                        values.data(), kManyBlocks, DType::kF16, ReduceOp::kAvg, kPatience);
                    int64_t wrong = 0;
                    for (size_t i = 0; i < values.size(); ++i) {
                      wrong += values[i] == (i % 3 == 0 ? kOneToFive[2] : 0) ? 0 : 1;
                    }
                    EXPECT_EQ(wrong, 0);
                  },
                  {.mode = test::RankMode::kThreads});
}

/// Two sums here, one of twice the length there: blocks do not pass for sums.
TEST(Hierarchical, SumsOfOneBlockDoNotPassForBlocksOfOne) {
  const auto store = rendezvous::in_process_store();
  const auto outcomes = test::try_run_ranks(
      3,
      [&](int rank) {
        const auto t = make_hierarchical(store, rank, 3, {.hosts = {0, 0, 1}});
        const int64_t count = rank == 2 ? 4 << 20 : 2 << 20;
        std::vector<float> values(static_cast<size_t>(count), 1);
        for (int call = rank == 2 ? 1 : 0; call < 2; ++call) {
          t->all_reduce(values.data(), count, DType::kF32, ReduceOp::kSum, std::chrono::seconds(2));
        }
      },
      {.mode = test::RankMode::kThreads});
  EXPECT_EQ(outcomes[2].error_type, "argosy::CommError") << describe(outcomes[2]);
  for (const char* called : {"rank 0 called all_reduce of 8388608 B of f32 (sum)",
                             "rank 2 called all_reduce of 16777216 B of f32 (sum)"}) {
    EXPECT_THAT(outcomes[2].error, ::testing::HasSubstr(called));
  }
}

/// A rank dies while blocks of a large sum are on their way: nobody waits for its deadline, and
/// all know who it was.
TEST(Hierarchical, ARankThatDiesBetweenBlocksIsNamed) {
  for (const int victim : {0, 2, 4}) {
    SCOPED_TRACE(victim);
    const test::TempDir folder;
    const auto start = std::chrono::steady_clock::now();
    const auto outcomes = test::try_run_ranks(
        5,
        [&](int rank) {
          const auto store = rendezvous::file_store((folder.path() / "store").string());
          const auto t = make_hierarchical(store, rank, 5, {.hosts = kTwoHosts});
          std::vector<float> values(kManyBlocks, 1);
          t->all_reduce(values.data(), kManyBlocks, DType::kF32, ReduceOp::kMax, kPatience);
          std::thread killer;
          if (rank == victim) {
            killer = std::thread([] {
              std::this_thread::sleep_for(std::chrono::milliseconds(10));
              ::raise(SIGKILL);
            });
          }
          for (;;) {
            t->all_reduce(values.data(), kManyBlocks, DType::kF32, ReduceOp::kMax, kPatience);
          }
        },
        {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(50)});
    EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience / 2);
    for (const auto& outcome : outcomes) {
      if (outcome.rank != victim) {
        EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
        EXPECT_THAT(outcome.peers, ElementsAre(victim)) << describe(outcome);
      }
    }
  }
}

/// One node whose data becomes the sum.
class InPlace final {
 public:
  explicit InPlace(void* data) : node_(data), sum_(data) {}
  [[nodiscard]] TreeBuffers on(const LeafDeal& deal) const {
    return {.deal = deal, .nodes = {&node_, 1}, .sums = {&sum_, 1}};
  }

 private:
  const void* node_;
  void* sum_;
};

/// The sum over "hosts" whose data are `parts`, one step each, as an all_reduce does it.
template <typename T>
std::vector<T> in_steps(std::vector<std::vector<T>> parts, DType dtype, ReduceOp op) {
  const auto count = static_cast<int64_t>(parts[0].size());
  const LeafDeal deal = LeafDeal::one_each(static_cast<int>(parts.size()));
  std::vector<InPlace> buffers;
  std::deque<Wide> wide;
  for (auto& part : parts) {
    buffers.emplace_back(part.data());
  }
  for (const InPlace& of_part : buffers) {
    wide.emplace_back(of_part.on(deal), /*takes=*/true, count, dtype, op);
  }
  constexpr uint8_t kMerges[] = {0, 1};
  for (size_t i = 1; i < wide.size(); ++i) {
    const void* const terms[] = {wide[0].sum(0), wide[i].node(0, 0)};
    reduce({.data = terms, .merges = kMerges, .count = 2},
           wide[0].sum(0),
           count,
           wide[0].dtype(),
           wide[0].op());
  }
  wide[0].finish();
  return parts[0];
}

TEST(Wide, SixteenBitFloatsAreRoundedOnce) {
  const uint16_t big = f32_to_f16(2048);
  const uint16_t one = f32_to_f16(1);  // 2048 + 1 is 2048 in f16
  const auto sum = in_steps<uint16_t>({{big}, {one}, {one}}, DType::kF16, ReduceOp::kSum);
  EXPECT_EQ(f16_to_f32(sum[0]), 2050);
  const auto average = in_steps<uint16_t>({{f32_to_f16(60000)}, {f32_to_f16(60000)}},
                                          DType::kF16,
                                          ReduceOp::kAvg);  // the sum alone is infinite
  EXPECT_EQ(f16_to_f32(average[0]), f16_to_f32(f32_to_f16(60000)));
}

TEST(Wide, AveragesOfIntegersDoNotWrapAndTruncate) {
  const auto average =
      in_steps<int8_t>({{100, -7, 127}, {101, 0, 127}}, DType::kI8, ReduceOp::kAvg);
  EXPECT_THAT(average, ElementsAre(100, -3, 127));
}

TEST(Wide, OtherSumsStayWhereTheyAre) {
  std::vector<float> values{1.0F, 2.0F};
  const LeafDeal deal = LeafDeal::one_each(2);
  const InPlace buffers(values.data());
  Wide wide(buffers.on(deal), /*takes=*/true, 2, DType::kF32, ReduceOp::kSum);
  EXPECT_EQ(static_cast<void*>(wide.sum(0)), values.data());
  wide.finish();
  EXPECT_THAT(values, ElementsAre(1.0F, 2.0F));
  const auto average = in_steps<float>({{1.0F}, {2.0F}}, DType::kF32, ReduceOp::kAvg);
  EXPECT_THAT(average, ElementsAre(1.5F));
}

}  // namespace
}  // namespace argosy::transport
