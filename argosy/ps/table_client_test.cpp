#include "argosy/ps/table_client.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/ps/first_row.h"
#include "argosy/ps/row_sum.h"
#include "argosy/ps/test_job.h"

namespace argosy::ps {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<uint64_t>;

/// Trains for a few steps, and returns what the tables hold in the end.
std::vector<float> trained(int servers, int workers, UpdateMode mode, bool backup = true) {
  std::vector<float> result;
  TestJob::run(two_tables(),
               {.servers = servers, .workers = workers, .mode = mode, .backup = backup},
               [&](TableClient& client, int worker) {
                 for (int step = 0; step < 7; ++step) {
                   train_step(client, worker, step);
                 }
                 if (worker == 0) {
                   result = all_values(client);
                 }
               });
  return result;
}

TEST(TableClient, ServersTellOfThemselves) {
  const JobOptions options{.servers = 2, .workers = 2, .mode = UpdateMode::kAsync};
  TestJob::run(two_tables(), options, [&](TableClient& client, int worker) {
    if (worker == 1) {
      return;  // it has not pushed
    }
    for (int step = 0; step < 3; ++step) {
      train_step(client, worker, step);
    }
    const std::vector<TableStat> all = client.stats();
    const std::vector<ServerStat> servers = client.server_stats();
    ASSERT_EQ(servers.size(), 2U);
    TableStat users{};
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(servers[i].lives);
      EXPECT_EQ(servers[i].name, fmt::format("server{}", i));
      EXPECT_EQ(servers[i].pushes, 3U);
      EXPECT_EQ(servers[i].apart, 3U);
      ASSERT_EQ(servers[i].tables.size(), 2U);
      EXPECT_EQ(servers[i].tables[0].name, "users");
      users.rows += servers[i].tables[0].rows;
      users.bytes += servers[i].tables[0].bytes;
    }
    EXPECT_EQ(users.rows, all[0].rows);
    EXPECT_EQ(users.bytes, 2 * all[0].bytes) << "each has a backup of the other, too";
  });
}

TEST(TableClient, TheNumberOfServersChangesNoBit) {
  for (const int workers : {1, 3}) {
    const std::vector<float> one = trained(1, workers, UpdateMode::kSync);
    ASSERT_EQ(one.size(), 200 * kDim + 200 * 3 + 103);
    for (const int servers : {2, 3, 4}) {
      EXPECT_EQ(trained(servers, workers, UpdateMode::kSync), one) << servers << " servers";
    }
  }
  EXPECT_EQ(trained(2, 3, UpdateMode::kSync, false), trained(2, 3, UpdateMode::kSync));
  EXPECT_NE(trained(2, 3, UpdateMode::kSync), trained(2, 1, UpdateMode::kSync));
}

TEST(TableClient, TheNumberOfThreadsChangesNoBit) {
  for (const UpdateMode mode : {UpdateMode::kSync, UpdateMode::kGeo}) {
    std::vector<float> of_one;
    for (const int threads : {1, 4}) {
      std::vector<float> rows;
      TestJob::run(two_tables(),
                   {.servers = 2, .mode = mode, .row_threads = threads},
                   [&](TableClient& client, int) {
                     std::mt19937_64 random(3);
                     for (int step = 0; step < 5; ++step) {
                       Ids batch(20'000);
                       std::vector<float> gradients(batch.size() * kDim);
                       std::ranges::generate(batch, [&] { return random() % 15'000; });
                       std::ranges::generate(gradients, [&] {
                         return static_cast<float>(random() % 2001) / 1000 - 1;
                       });
                       const IdDeal deal = client.deal(batch);
                       const TableClient::Gradients pushed{
                           .table = 0, .ids = deal, .gradients = gradients, .lr = 0.5};
                       client.push({&pushed, 1});
                       rows.resize(gradients.size());
                       const TableClient::Rows read{.table = 0, .ids = deal, .out = rows};
                       client.pull({&read, 1});
                     }
                   });
      of_one = threads == 1 ? rows : of_one;
      EXPECT_EQ(rows, of_one);
    }
  }
}

TEST(TableClient, SyncIsTheUpdateByTheAverage) {
  constexpr int kWorkers = 3;
  const Ids ids{7, 8, 9};
  TestJob::run(two_tables(naive()),
               {.servers = 2, .workers = kWorkers, .mode = UpdateMode::kSync},
               [&](TableClient& client, int worker) {
                 // Worker 0 has no gradient for id 7, worker 1 has two, which are added first.
                 const Ids mine = worker == 0 ? Ids{8} : worker == 1 ? Ids{7, 9, 7} : Ids{9, 7, 8};
                 std::vector<float> gradients;
                 for (size_t i = 0; i < mine.size() * kDim; ++i) {
                   gradients.push_back(0.1F * static_cast<float>(worker + 1) +
                                       0.01F * static_cast<float>(i));
                 }
                 const IdDeal deal(mine);
                 const TableClient::Gradients pushed{
                     .table = 0, .ids = deal, .gradients = gradients, .lr = 0.5};
                 client.push({&pushed, 1});
                 const std::vector<float> after = rows_of(client, 0, ids);
                 const auto g = [](int of, size_t row, size_t d) {
                   return 0.1F * static_cast<float>(of + 1) +
                          0.01F * static_cast<float>(row * kDim + d);
                 };
                 for (size_t d = 0; d < kDim; ++d) {
                   const float seven = (g(1, 0, d) + g(1, 2, d)) + g(2, 1, d);
                   const float eight = g(0, 0, d) + g(2, 2, d);
                   const float nine = g(1, 1, d) + g(2, 0, d);
                   size_t row = 0;
                   for (const float sum : {seven, eight, nine}) {
                     std::vector<float> first(kDim);
                     draw_first_row(0, ids[row], 0.1F, first);
                     EXPECT_EQ(after[row * kDim + d], first[d] - 0.5F * (sum / 3)) << row;
                     ++row;
                   }
                 }
               });
}

TEST(TableClient, AsyncAppliesEachPushOnce) {
  constexpr int kWorkers = 3;
  constexpr int kSteps = 40;
  TestJob::run(
      two_tables(naive()),
      {.servers = 2, .workers = kWorkers, .mode = UpdateMode::kAsync},
      [&](TableClient& client, int worker) {
        static std::barrier<> all(kWorkers);
        const Ids ids{1, 2, 3, 4, 5, 1};
        const IdDeal deal(ids);
        const std::vector<float> gradients(ids.size() * kDim, 0.125F);
        const std::vector<float> weight(100, 0.25F);
        const std::vector<float> bias(3, 0.5F);
        const TableClient::DenseGradients dense{.gradients = {weight, bias}, .lr = {0.5, 0.5}};
        for (int step = 0; step < kSteps; ++step) {
          const TableClient::Gradients pushed{
              .table = 0, .ids = deal, .gradients = gradients, .lr = 0.5};
          client.push({&pushed, 1}, &dense);
          (void)rows_of(client, 0, ids);
        }
        all.arrive_and_wait();
        if (worker > 0) {
          return;
        }
        DenseValues values;
        client.pull({}, &values.dense);
        EXPECT_FLOAT_EQ(values.weight[50], 0.5F - kWorkers * kSteps * 0.125F);
        EXPECT_FLOAT_EQ(values.bias[2], 3 - kWorkers * kSteps * 0.25F);
        const std::vector<float> rows = rows_of(client, 0, {2, 1});
        std::vector<float> first(kDim);
        draw_first_row(0, 2, 0.1F, first);
        EXPECT_NEAR(rows[0], first[0] - kWorkers * kSteps * 0.0625, 1e-4);
        draw_first_row(0, 1, 0.1F, first);
        EXPECT_NEAR(rows[kDim], first[0] - kWorkers * kSteps * 0.125, 1e-4);
        const std::vector<TableStat> stats = client.stats();
        EXPECT_EQ(stats[0].name, "users");
        EXPECT_EQ(stats[0].rows, 5U);
        EXPECT_GT(stats[0].bytes, 0U);
        EXPECT_EQ(stats[1].rows, 0U);
      });
}

TEST(TableClient, GeoAddsWhatWorkersHaveLearned) {
  TestJob::run(two_tables(),
               {.servers = 2, .workers = 1, .mode = UpdateMode::kGeo},
               [&](TableClient& client, int /*worker*/) {
                 const Ids ids{4, 6};
                 const std::vector<float> before = rows_of(client, 0, ids);
                 const IdDeal deal(ids);
                 const std::vector<float> differences(ids.size() * kDim, 0.25F);
                 const TableClient::Gradients pushed{
                     .table = 0, .ids = deal, .gradients = differences};
                 client.push({&pushed, 1});
                 const std::vector<float> after = rows_of(client, 0, ids);
                 for (size_t i = 0; i < after.size(); ++i) {
                   EXPECT_EQ(after[i], before[i] + 0.25F);
                 }
               });
}

TEST(TableClient, ShrinkAndDaysHaveTheirPlaceAmongThePushes) {
  TableSet tables = two_tables(naive());
  tables.sparse[0].statistics = true;
  tables.sparse[0].shrink = {.delete_score = 0, .delete_after_unseen_days = 2};
  for (const UpdateMode mode : {UpdateMode::kSync, UpdateMode::kAsync}) {
    TestJob::run(
        tables, {.servers = 2, .workers = 2, .mode = mode}, [&](TableClient& client, int worker) {
          static std::barrier<> all(2);
          const auto touch = [&](const Ids& ids) {
            const IdDeal deal(ids);
            const std::vector<float> gradients(ids.size() * kDim, 1);
            const TableClient::Gradients pushed{.table = 0, .ids = deal, .gradients = gradients};
            client.push({&pushed, 1});
            all.arrive_and_wait();
          };
          const auto upkeep = [&](const std::function<void()>& act) {
            if (mode == UpdateMode::kSync || worker == 0) {
              act();
            }
            all.arrive_and_wait();
          };
          touch({1, 2, 3});
          for (const int day : {1, 2, 3}) {
            upkeep([&] { client.set_day(day); });
            touch({1});
            upkeep([&] { client.shrink(); });
            (void)rows_of(client, 0, {1});
            all.arrive_and_wait();
            EXPECT_EQ(client.stats()[0].rows, day < 3 ? 3U : 1U) << "on day " << day;
            all.arrive_and_wait();
          }
          EXPECT_THROW(client.set_day(-1), UsageError);
        });
  }
}

TEST(TableClient, AnotherProcessGoesOnWhereAWorkerWas) {
  TableSet tables = two_tables(naive());
  tables.sparse[0].statistics = true;
  std::vector<float> before;
  TestJob::run(tables,
               {.servers = 2, .workers = 1, .mode = UpdateMode::kAsync, .lives = 2},
               [&](TableClient& client, int /*worker*/) {
                 const Ids ids{1, 2, 3, 4, 5, 6};
                 const IdDeal deal(ids);
                 const std::vector<float> gradients(ids.size() * kDim, 1);
                 const TableClient::Gradients pushed{
                     .table = 0, .ids = deal, .gradients = gradients, .lr = 1};
                 client.push({&pushed, 1});
                 if (before.empty()) {
                   client.set_day(1);
                   client.push({&pushed, 1});
                   EXPECT_EQ(client.steps_before(), 0U);
                   EXPECT_EQ(client.pushes_of(0), 2U);
                   before = rows_of(client, 0, ids);
                   return;
                 }
                 EXPECT_EQ(client.steps_before(), 2U) << "a day is no step";
                 EXPECT_EQ(client.pushes_of(0), 3U);
                 const std::vector<float> after = rows_of(client, 0, ids);
                 for (size_t i = 0; i < after.size(); ++i) {
                   EXPECT_EQ(after[i], before[i] - 1) << "the servers took its push for an old one";
                 }
               });
}

TEST(TableClient, TablesAreOthersWhenTheirEntryOrShrinkIs) {
  const TableSet tables = two_tables();
  TableSet late = tables;
  late.sparse[0].entry = Entry::count(3);
  TableSet gone = tables;
  gone.sparse[0].shrink.delete_score = 5;
  TableSet rarely = tables;
  rarely.sparse[0].entry = Entry::probability(0.1);
  const std::set<uint64_t> all{
      tables.fingerprint(), late.fingerprint(), gone.fingerprint(), rarely.fingerprint()};
  EXPECT_EQ(all.size(), 4U);
  EXPECT_EQ(gone.lines(), tables.lines()) << "a checkpoint's rows may be dropped by another rule";
  EXPECT_THAT(late.lines().front(), testing::HasSubstr(", made at push 3"));
}

TEST(TableClient, HalfAsyncHoldsTheFastBack) {
  constexpr uint64_t kStaleness = 3;
  constexpr int kSteps = 30;
  std::atomic<int> slow = 0;
  std::atomic<int> farthest = 0;
  TestJob::run(
      two_tables(),
      {.servers = 2, .workers = 2, .mode = UpdateMode::kHalfAsync, .staleness = kStaleness},
      [&](TableClient& client, int worker) {
        for (int step = 0; step < kSteps; ++step) {
          (void)rows_of(client, 0, {1, 2, 3});
          if (worker == 0) {
            farthest = std::max(farthest.load(), step - slow.load());
          } else {
            std::this_thread::sleep_for(5ms);
            slow = step + 1;  // a moment before the servers know
          }
          client.push({});
        }
      });
  EXPECT_LE(farthest, static_cast<int>(kStaleness));
  EXPECT_GE(farthest, 1) << "nobody was ahead, so nobody was held back";
}

TEST(TableClient, UpkeepIsNoStepThatHalfAsyncWaitsFor) {
  std::barrier<> both(2);
  TestJob::run(two_tables(),
               {.servers = 2, .workers = 2, .mode = UpdateMode::kHalfAsync, .patience = 5s},
               [&](TableClient& client, int worker) {
                 client.push({});
                 (void)rows_of(client, 0, {1});
                 both.arrive_and_wait();
                 if (worker == 0) {
                   EXPECT_NO_THROW(client.set_day(1));
                 }
                 both.arrive_and_wait();
                 client.push({});
                 (void)rows_of(client, 0, {1});
               });
}

TEST(TableClient, OtherTablesAreRefused) {
  TableSet other = two_tables();
  EXPECT_EQ(other.fingerprint(), two_tables().fingerprint());
  other.sparse[0].dim = 6;
  TestJob::run(
      two_tables(), {.servers = 1, .workers = 1, .refused = &other}, [](TableClient& client, int) {
        EXPECT_EQ(client.tables().index_of("items"), 1U);
        EXPECT_THROW((void)client.tables().index_of("item"), UsageError);
      });
}

TEST(TableClient, ServersWithFewThreadsDoNotWaitForEachOther) {
  // Each server's only thread serves a push, which waits until the other server has it too.
  TestJob::run(two_tables(naive()),
               {.servers = 2, .workers = 4, .mode = UpdateMode::kAsync, .threads = 1},
               [&](TableClient& client, int worker) {
                 const Ids ids{1, 2, 3, 4, 5, static_cast<uint64_t>(worker)};
                 const IdDeal deal(ids);
                 const std::vector<float> gradients(ids.size() * kDim, 1.0F);
                 for (int step = 0; step < 50; ++step) {
                   const TableClient::Gradients pushed{
                       .table = 0, .ids = deal, .gradients = gradients};
                   client.push({&pushed, 1});
                 }
               });
}

// -- What a server takes.

class Requests : public ::testing::Test {
 protected:
  Partition partition_{two_tables(), {.number = 1, .count = 2, .workers = 2}};

  /// An id that lies in a shard of this server, counted from its first.
  static uint64_t id_in(int shard) {
    for (uint64_t id = 0;; ++id) {
      if (shard_of(id) == shards_of(1, 2).first + shard) {
        return id;
      }
    }
  }
  static RowsPushed rows(const Ids& ids, std::vector<uint32_t> counts, size_t floats) {
    counts.resize(32);
    return {.table = 0,
            .lr = 0.1,
            .counts = std::move(counts),
            .ids = rpc::Memory::own(ids),
            .gradients = rpc::Memory::own(std::vector<float>(floats, 1.0F))};
  }
  std::string refused(const PushRequest& request) {
    try {
      partition_.push(request);
    } catch (const UsageError& error) {
      EXPECT_EQ(partition_.updates(), 0U);
      return error.what();
    }
    return "";
  }
};

TEST_F(Requests, ThatDoNotFitAreRefusedAndChangeNothing) {
  using ::testing::HasSubstr;
  const uint64_t good = id_in(0);
  EXPECT_THAT(refused({.worker = 2}), HasSubstr("there is no worker 2"));
  EXPECT_THAT(refused({.worker = 0, .number = 1}), HasSubstr("push 1 came before push 0"));
  EXPECT_THAT(refused({.rows = {rows({good}, {1}, kDim - 1)}}), HasSubstr("gradients of [1, 5]"));
  EXPECT_THAT(refused({.rows = {rows({good}, {2}, kDim)}}), HasSubstr("2 ids in 32 shards"));
  EXPECT_THAT(refused({.rows = {rows({good}, {0, 1}, kDim)}}), HasSubstr("is not of shard 33"));
  RowsPushed other = rows({good}, {1}, kDim);
  other.table = 7;
  EXPECT_THAT(refused({.rows = {other}}), HasSubstr("there is no table 7"));
  other = rows({good}, {1}, kDim);
  other.shows = rpc::Memory::own(std::vector<float>(2));
  EXPECT_THAT(refused({.rows = {other}}), HasSubstr("8 of shows"));
  EXPECT_THAT(refused({.dense_lr = {0.1, 0.1, 0.1}}), HasSubstr("dense parameters"));
  const RowsPushed once = rows({good}, {1}, kDim);
  EXPECT_THAT(refused({.rows = {once, once}}), HasSubstr("two gradients in one push"));
  EXPECT_EQ(refused({.rows = {rows({good}, {1}, kDim)}}), "");
  EXPECT_EQ(partition_.stat(0).rows, 0U) << "the other worker has not pushed yet";
  EXPECT_EQ(refused({.rows = {rows({good}, {1}, kDim)}}), "") << "a push that came already";
  partition_.push({.worker = 1});
  EXPECT_EQ(partition_.updates(), 1U);
  EXPECT_EQ(partition_.stat(0).rows, 1U);
}

// -- IdDeal, RowSum

TEST(IdDeal, HasEachIdOnceByItsShard) {
  std::mt19937_64 random(5);
  Ids ids;
  for (int i = 0; i < 5000; ++i) {
    ids.push_back(random() % 700 * 0x123456789U);
  }
  const IdDeal deal(ids);
  const std::set<uint64_t> different(ids.begin(), ids.end());
  EXPECT_EQ(deal.ids().size(), different.size());
  EXPECT_EQ(std::set<uint64_t>(deal.ids().begin(), deal.ids().end()), different);
  size_t places = 0;
  for (int s = 0; s < kShards; ++s) {
    size_t next = deal.begin(s);
    deal.for_each_place(static_cast<size_t>(s), [&](size_t i, size_t u) {
      EXPECT_EQ(deal.ids()[u], ids[i]);
      EXPECT_LE(u, next) << "the first of each comes in their order";
      next += u == next ? 1 : 0;
      ++places;
    });
    for (size_t at = deal.begin(s); at < deal.begin(s + 1); ++at) {
      EXPECT_EQ(shard_of(deal.ids()[at]), s);
    }
  }
  EXPECT_EQ(places, ids.size());
  EXPECT_TRUE(IdDeal(Ids{}).ids().empty());
}

TEST(RowSum, HasTheOrderOfEverySum) {
  // T(5) = ((0 + 1) + (2 + 3)) + 4: numbers whose sum depends on the order.
  const std::vector<std::vector<float>> numbers{{1e8F}, {1}, {-1e8F}, {1}, {0.25F}};
  std::vector<const float*> leaves;
  for (const auto& one : numbers) {
    leaves.push_back(one.data());
  }
  std::vector<float> out(1);
  average_of(leaves, out);
  EXPECT_EQ(out[0], (((1e8F + 1.0F) + (-1e8F + 1.0F)) + 0.25F) / 5);
  leaves[1] = nullptr;
  leaves[2] = nullptr;
  average_of(leaves, out);
  EXPECT_EQ(out[0], ((1e8F + 1.0F) + 0.25F) / 5);
  leaves.assign(5, nullptr);
  average_of(leaves, out);
  EXPECT_EQ(out[0], 0);
}

TEST(Shards, AreDividedEvenly) {
  for (int servers = 1; servers <= 7; ++servers) {
    int next = 0;
    for (int s = 0; s < servers; ++s) {
      EXPECT_EQ(shards_of(s, servers).first, next);
      EXPECT_GE(shards_of(s, servers).count(), kShards / servers);
      next = shards_of(s, servers).last;
    }
    EXPECT_EQ(next, kShards);
  }
  std::vector<DenseOptions> dense(8);
  for (DenseOptions& one : dense) {
    one.initial.resize(10);
  }
  std::array<int, 4> of_server{};
  for (const int shard : dense_shards(dense)) {
    ++of_server[static_cast<size_t>(shard / 16)];
  }
  EXPECT_THAT(of_server, ::testing::Each(2));
}

}  // namespace
}  // namespace argosy::ps
