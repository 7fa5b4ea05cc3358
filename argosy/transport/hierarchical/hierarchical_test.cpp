/// Who is in which lane, and types that lose nothing between the steps; tests/conformance has the
/// rest.
#include "argosy/transport/hierarchical/hierarchical.h"

#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/hierarchical/layout.h"
#include "argosy/transport/hierarchical/wide.h"
#include "argosy/transport/reduce.h"

#include "tests/support/run_ranks.h"

namespace argosy::transport {
namespace {

using ::testing::ElementsAre;

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

/// The sum over "hosts" whose data are `parts`, one step each, as an all_reduce does it.
template <typename T>
std::vector<T> in_steps(std::vector<std::vector<T>> parts, DType dtype, ReduceOp op) {
  const auto count = static_cast<int64_t>(parts[0].size());
  std::vector<Wide> wide;
  wide.reserve(parts.size());
  for (auto& part : parts) {
    wide.emplace_back(part.data(), count, dtype, op, static_cast<int>(parts.size()));
  }
  for (size_t i = 1; i < wide.size(); ++i) {
    const std::vector<const void*> sources{wide[0].data(), wide[i].data()};
    reduce(sources, wide[0].data(), count, wide[0].dtype(), wide[0].op());
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
  Wide wide(values.data(), 2, DType::kF32, ReduceOp::kSum, 2);
  EXPECT_EQ(static_cast<void*>(wide.data()), values.data());
  wide.finish();
  EXPECT_THAT(values, ElementsAre(1.0F, 2.0F));
  const auto average = in_steps<float>({{1.0F}, {2.0F}}, DType::kF32, ReduceOp::kAvg);
  EXPECT_THAT(average, ElementsAre(1.5F));
}

}  // namespace
}  // namespace argosy::transport
