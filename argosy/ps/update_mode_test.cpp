// Late gradients, with real servers.
#include "argosy/ps/update_mode.h"

#include <array>
#include <barrier>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/ps/partition.h"
#include "argosy/ps/test_job.h"

#include "tests/support/error_text.h"

namespace argosy::ps {
namespace {

using test::error_text;
using ::testing::HasSubstr;
using Ids = std::vector<uint64_t>;

constexpr float kRate = 0.5F;

/// A row and the dense parameters, as a worker read them, and how it pushes a gradient of them.
struct LateReader {
  explicit LateReader(TableClient& of) : client(of) { read(); }

  void read() {
    const TableClient::Rows wanted{.table = 0, .ids = ids, .out = rows};
    seen = client.pull({&wanted, 1}, &values.dense);
  }
  /// The gradient `g` of each weight, of what it read last.
  void push(float g) {
    const std::vector<float> gradients(rows.size(), g / 2);  // the id is there twice
    const TableClient::Gradients of_rows{
        .table = 0, .ids = ids, .gradients = gradients, .lr = kRate, .seen = seen, .read = rows};
    const std::vector<float> weight(100, g);
    const std::vector<float> bias(3, g);
    const TableClient::DenseGradients dense{.gradients = {weight, bias},
                                            .lr = {kRate, kRate},
                                            .seen = seen,
                                            .read = {values.weight, values.bias}};
    client.push({&of_rows, 1}, &dense);
  }

  TableClient& client;
  IdDeal ids{Ids{7, 7}};
  std::vector<float> rows = std::vector<float>(2 * kDim);
  DenseValues values{};
  TableClient::Seen seen{};
};

/// Worker 1 pushes once, worker 0 three times, and worker 1 again, of its first read. Then worker 1
/// reads, worker 0 pushes, and worker 1 does. Returns a row and bias 1 at the end.
std::array<float, 2> race(const LateOptions& late) {
  std::array<float, 2> result{};
  std::barrier<> all(2);
  TestJob::run(two_tables(naive()),
               {.servers = 2, .workers = 2, .mode = UpdateMode::kAsync, .late = late},
               [&](TableClient& client, int worker) {
                 LateReader mine(client);
                 all.arrive_and_wait();
                 if (worker == 1) {
                   mine.push(1);
                 }
                 all.arrive_and_wait();
                 if (worker == 0) {
                   mine.read();  // so that only worker 1 is late
                   mine.push(2);
                   client.set_day(1);  // no step
                   mine.push(2);
                   mine.push(2);
                 }
                 all.arrive_and_wait();
                 if (worker == 1) {
                   mine.push(1);
                   mine.read();
                 }
                 all.arrive_and_wait();
                 if (worker == 0) {
                   mine.read();
                   mine.push(2);
                 }
                 all.arrive_and_wait();
                 if (worker == 1) {
                   mine.push(1);
                   mine.read();
                   result = {mine.rows[0], mine.values.bias[1]};
                 }
               });
  return result;
}

/// What one weight becomes in race().
float raced(float weight, const LateOptions& late) {
  const auto lambda = static_cast<float>(late.compensation);
  const auto push = [&](float g, float read, int staleness) {
    const double rate = late.scales_rates && staleness > 1 ? kRate / double{3} : kRate;
    const float moved = g + lambda * (g * g) * (weight - read);
    weight = weight - static_cast<float>(rate) * moved;
  };
  float one = weight;
  push(1, one, 0);
  float zero = weight;
  push(2, zero, 0);
  push(2, zero, 0);
  push(2, zero, 0);
  push(1, one, 3);
  one = weight;
  zero = weight;
  push(2, zero, 0);
  push(1, one, 1);
  return weight;
}

TEST(LatePushes, HaveTheirRateDividedAndTheirGradientCompensated) {
  const float bias = two_tables().dense[1].initial[1];
  std::array<float, kDim> row{};
  draw_first_row(0, 7, 0.1F, row);
  for (const LateOptions& late : {LateOptions{},
                                  LateOptions{.scales_rates = true},
                                  LateOptions{.compensation = 0.25},
                                  LateOptions{.scales_rates = true, .compensation = 0.25}}) {
    const std::array<float, 2> result = race(late);
    EXPECT_EQ(result[0], raced(row[0], late)) << late.scales_rates << " " << late.compensation;
    EXPECT_EQ(result[1], raced(bias, late)) << late.scales_rates << " " << late.compensation;
  }
}

/// Eight workers descend w²/2 in turns, at the rate 0.5, each by the gradient of what it read after
/// its last push. Returns how far the weight is from 0 at the end, where it began at 1.
float descend(const LateOptions& late) {
  constexpr int kWorkers = 8;
  constexpr int kRounds = 15;
  float result = 0;
  std::barrier<> all(kWorkers);
  TestJob::run(two_tables(naive()),
               {.workers = kWorkers, .mode = UpdateMode::kAsync, .late = late},
               [&](TableClient& client, int worker) {
                 LateReader mine(client);
                 for (int turn = 0; turn < kWorkers * kRounds; ++turn) {
                   all.arrive_and_wait();
                   if (turn % kWorkers == worker) {
                     mine.push(mine.values.bias[0]);
                     mine.read();
                   }
                 }
                 all.arrive_and_wait();
                 if (worker == 0) {
                   mine.read();
                   result = std::abs(mine.values.bias[0]);
                 }
               });
  return result;
}

TEST(LatePushes, ConvergeWithRatesThatTheirDelayWouldMakeTooLarge) {
  // w ← w − r·w₇ is stable up to r = 2·sin(π/30) = 0.21.
  EXPECT_GT(descend({}), 10.0F);
  EXPECT_LT(descend({.scales_rates = true}), 0.1F);
}

TEST(LatePushes, AreRefusedWhereNothingIsLate) {
  const auto text_of = [](UpdateMode mode, const LateOptions& late) {
    return error_text<UsageError>(
        [&] { const Partition partition(two_tables(), {.mode = mode, .late = late}); });
  };
  EXPECT_THAT(text_of(UpdateMode::kSync, {.scales_rates = true}),
              HasSubstr("in kSync no gradient is late"));
  EXPECT_THAT(text_of(UpdateMode::kGeo, {.compensation = 0.1}),
              HasSubstr("kGeo workers send differences"));
  EXPECT_THAT(text_of(UpdateMode::kAsync, {.compensation = -1}), HasSubstr("got -1"));
}

TEST(LatePushes, MustSayWhatWasRead) {
  Partition partition(two_tables(), {.mode = UpdateMode::kAsync, .late = {.compensation = 0.1}});
  PushRequest push{.dense_lr = {1, 1}, .dense = rpc::Memory::own(std::vector<float>(103, 1.0F))};
  EXPECT_THAT(error_text<UsageError>([&] { partition.push(push); }),
              HasSubstr("the push does not say what its worker has read"));
  push.dense_read = rpc::Memory::own(std::vector<float>(102));
  EXPECT_THAT(error_text<UsageError>([&] { partition.push(push); }),
              HasSubstr("expected 103 numbers that the worker has read, got 408 bytes"));
  EXPECT_EQ(partition.updates(), 0U);
  push.dense_read = rpc::Memory::own(std::vector<float>(103));
  partition.push(push);
  EXPECT_EQ(partition.updates(), 1U);
}

TEST(LatePushes, OfProgramsWithOtherTermsAreRefused) {
  TestJob::run(two_tables(),
               {.mode = UpdateMode::kAsync, .terms = "kAsync", .refused_terms = "kGeo"},
               [](TableClient& client, int) { EXPECT_EQ(client.steps_before(), 0U); });
}

}  // namespace
}  // namespace argosy::ps
