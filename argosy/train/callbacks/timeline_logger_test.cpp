#include "argosy/train/callbacks/timeline_logger.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/optim/sgd.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"
#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

using nlohmann::json;
using testing::blobs;
using testing::run_job;
using testing::small_net;

/// How many events of each name a closed file has, and the lanes' names.
struct Read {
  std::map<std::string, int> count{};
  std::set<std::string> lanes{};
  std::set<int> ranks{};
};

Read read(const std::string& path) {
  std::ifstream file(path);
  Read result;
  for (const json& event : json::parse(file)) {
    if (event["ph"] == "X") {
      ++result.count[event["name"].get<std::string>()];
      result.ranks.insert(event["pid"].get<int>());
      EXPECT_GE(event["dur"].get<double>(), 0);
    } else if (event["name"] == "thread_name") {
      result.lanes.insert(event["args"]["name"].get<std::string>());
    }
  }
  return result;
}

void fit(const std::string& folder, TimelineLoggerOptions options, int64_t samples) {
  const testing::SmallNet net = small_net();
  Model model(net);
  model.prepare(optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy());
  options.folder = folder;
  model.fit(blobs(samples),
            blobs(8),
            {.batch_size = 4, .callbacks = {TimelineLogger(options)}, .log = {.verbose = 0}});
}

TEST(TimelineOfTraining, EachRankHasItsOwnWithEveryPhase) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  run_job(2, [&](int rank) {
    fit(path, {}, 40);
    const Read own = read(path + "/timeline.rank" + std::to_string(rank) + ".json");
    for (const char* name : {"forward", "backward", "reduce", "wait for gradients", "update"}) {
      EXPECT_EQ(own.count.at(name), 5) << name;
    }
    EXPECT_EQ(own.count.at("data wait"), 6);  // the last one finds the epoch's end
    EXPECT_EQ(own.count.at("evaluation"), 1);
    EXPECT_EQ(own.ranks, std::set<int>{rank});
    EXPECT_EQ(own.lanes, (std::set<std::string>{"input", "compute", "communication", "between"}));
  });
}

TEST(TimelineOfTraining, ALongOneIsThinnedAndKeepsItsEnd) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  run_job(1, [&](int) {
    fit(path, {.events_until_thinned = 40}, 4 * 1000);
    const Read all = read(path + "/timeline.rank0.json");
    // 4 events a step: 10 steps whole, then 10 of every second, fourth … up to the thousandth.
    EXPECT_GE(all.count.at("forward"), 60);
    EXPECT_LE(all.count.at("forward"), 80);
    EXPECT_EQ(all.count.at("evaluation"), 1);
  });
}

TEST(TimelineOfTraining, AnEarlierOneIsKept) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  run_job(1, [&](int) {
    fit(path, {}, 40);
    fit(path, {}, 8);
    EXPECT_EQ(read(path + "/timeline.rank0.json").count.at("forward"), 2);
    EXPECT_EQ(read(path + "/earlier.timeline.rank0.json").count.at("forward"), 10);
    EXPECT_THAT(test::error_text<UsageError>([&] { fit("", {}, 8); }),
                ::testing::HasSubstr("[train.TimelineLogger] no folder"));
  });
}

}  // namespace
}  // namespace argosy::train
