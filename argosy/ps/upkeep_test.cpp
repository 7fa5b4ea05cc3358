#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/ps/partition.h"
#include "argosy/ps/test_job.h"

namespace argosy::ps {
namespace {

/// One table of rows that are dropped when nobody saw them for two days.
TableSet table() {
  TableSet tables = two_tables(naive());
  tables.sparse.resize(1);
  tables.dense.clear();
  tables.sparse[0].statistics = true;
  tables.sparse[0].shrink = {.delete_score = 0, .delete_after_unseen_days = 2};
  return tables;
}

/// A server's part, with all shards, and what workers send it.
class Upkeeps : public ::testing::Test {
 protected:
  static PartitionOptions options(UpdateMode mode, int workers) {
    return {.workers = workers, .mode = mode};
  }
  /// A step of row `id`, with gradients of 1 and a rate of 1.
  static PushRequest push(uint32_t worker, uint64_t number, uint64_t id = 7) {
    std::vector<uint32_t> counts(kShards);
    counts.at(static_cast<size_t>(shard_of(id))) = 1;
    RowsPushed rows{.table = 0, .lr = 1, .counts = counts};
    rows.ids = rpc::Memory::own(std::vector<uint64_t>{id});
    rows.gradients = rpc::Memory::own(std::vector<float>(kDim, 1.0F));
    return {.worker = worker, .number = number, .rows = {rows}};
  }
  static PushRequest upkeep(uint32_t worker, uint64_t number, uint64_t upkeeps, Upkeep what) {
    return {.worker = worker, .number = number, .upkeeps = upkeeps, .upkeep = what, .steps = 0};
  }
  static float value(const Partition& partition, uint64_t id = 7) {
    PullRequest request;
    request.rows.push_back({.table = 0, .counts = push(0, 0, id).rows[0].counts});
    request.rows[0].ids = rpc::Memory::own(std::vector<uint64_t>{id});
    std::vector<float> row(kDim);
    partition.pull(request, row);
    return row[0];
  }
};

TEST_F(Upkeeps, OfAWorkerThatDiesBetweenTheServersCostNoStep) {
  Partition heard(table(), options(UpdateMode::kAsync, 1));
  Partition deaf(table(), options(UpdateMode::kAsync, 1));
  for (Partition* const one : {&heard, &deaf}) {
    one->push(push(0, 0));
  }
  heard.push(upkeep(0, 1, 0, {.day = 5}));  // and the worker is killed
  EXPECT_EQ(heard.pushes_of(0), 1U);
  EXPECT_EQ(heard.upkeeps_of(0), 1U);
  const float before = value(heard);
  for (Partition* const one : {&heard, &deaf}) {
    one->push(push(0, 1));  // the next one does not repeat the day
    EXPECT_EQ(value(*one), before - 1);
    EXPECT_EQ(one->steps_of(0), 2U);
    EXPECT_EQ(one->upkeeps_of(0), 0U);
  }
}

TEST_F(Upkeeps, ThatAreRepeatedAreDoneOnce) {
  Partition partition(table(), options(UpdateMode::kAsync, 1));
  partition.push(push(0, 0));
  const PushRequest day = upkeep(0, 1, 0, {.day = 5});
  EXPECT_FALSE(partition.has(day));
  partition.push(day);
  EXPECT_TRUE(partition.has(day));
  EXPECT_FALSE(partition.has(push(0, 1)));
  const PushRequest shrink = upkeep(0, 1, 1, {.shrink = true});
  EXPECT_FALSE(partition.has(shrink));
  partition.push(shrink);
  EXPECT_EQ(partition.stat(0).rows, 0U) << "it was not seen for five days";
  partition.push(push(0, 1));
  partition.push(shrink);  // late, a second time
  partition.push(upkeep(0, 2, 0, {.day = 9}));
  partition.push(push(0, 2, 8));
  partition.push(shrink);
  EXPECT_EQ(partition.stat(0).rows, 2U);
}

TEST_F(Upkeeps, OfSomeWorkersGoBeforeTheStepInKSync) {
  Partition partition(table(), options(UpdateMode::kSync, 2));
  const float fresh = value(partition);
  partition.push(push(0, 0));
  partition.push(push(1, 0));
  EXPECT_EQ(value(partition), fresh - 1);
  partition.push(upkeep(0, 1, 0, {.day = 5, .shrink = false}));
  EXPECT_TRUE(partition.must_wait({.worker = 0, .pushes = 1}));
  partition.push(push(1, 1));  // this one was started again, and knows of no day
  EXPECT_FALSE(partition.must_wait({.worker = 0, .pushes = 1})) << "the day has begun";
  EXPECT_EQ(value(partition), fresh - 1) << "and the step waits for the other one";
  partition.push(push(0, 1));
  EXPECT_EQ(value(partition), fresh - 2);
  EXPECT_EQ(partition.updates(), 2U);
}

TEST_F(Upkeeps, ThatWaitTravelWithTheState) {
  Partition partition(table(), options(UpdateMode::kSync, 2));
  partition.push(push(0, 0));
  partition.push(push(1, 0));
  partition.push(upkeep(0, 1, 0, {.day = 5}));
  partition.push(upkeep(1, 1, 0, {.day = 5}));
  partition.push(upkeep(0, 1, 1, {.shrink = true}));  // the second one waits
  Partition copy(table(), options(UpdateMode::kSync, 2));
  copy.restore(partition.state());
  for (const uint32_t worker : {0U, 1U}) {
    EXPECT_EQ(copy.pushes_of(worker), 1U);
    EXPECT_EQ(copy.upkeeps_of(worker), partition.upkeeps_of(worker));
  }
  EXPECT_EQ(copy.upkeeps_of(0), 2U);
  EXPECT_TRUE(copy.must_wait({.worker = 0, .pushes = 1}));
  copy.push(upkeep(1, 1, 1, {.shrink = true}));
  EXPECT_FALSE(copy.must_wait({.worker = 0, .pushes = 1}));
}

TEST(UpkeepOfAClient, GoesOnWhereAnotherProcessWas) {
  bool first = true;
  TestJob::run(table(),
               {.servers = 2, .workers = 1, .mode = UpdateMode::kAsync, .lives = 2},
               [&](TableClient& client, int /*worker*/) {
                 if (std::exchange(first, false)) {
                   const std::vector<uint64_t> ids{1, 2, 3, 4};
                   const IdDeal deal(ids);
                   const std::vector<float> gradients(ids.size() * kDim, 1);
                   const TableClient::Gradients pushed{
                       .table = 0, .ids = deal, .gradients = gradients};
                   client.push({&pushed, 1});
                   client.set_day(1);
                   return;
                 }
                 EXPECT_EQ(client.steps_before(), 1U);
                 client.set_day(4);
                 client.shrink();
                 EXPECT_EQ(client.stats()[0].rows, 0U) << "the fourth day was taken for the first";
               });
}

}  // namespace
}  // namespace argosy::ps
