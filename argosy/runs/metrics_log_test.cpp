#include "argosy/runs/metrics_log.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/events/jsonl_writer.h"

#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::runs {
namespace {

struct MetricsLogTest : ::testing::Test {
  test::TempDir folder{};
  std::string path = (folder.path() / "metrics.jsonl").string();
  MetricsLog log{path};

  void append(const std::string& text) const { std::ofstream(path, std::ios::app) << text; }
  double last(const char* name, const char* split) const {
    const NamedCurve* curve = log.find(name, split);
    return curve == nullptr || curve->curve.empty() ? -1 : curve->curve.last().y;
  }
};

TEST_F(MetricsLogTest, ReadsWhatTheWriterWrites) {
  EXPECT_FALSE(log.read());  // no file yet
  events::JsonlWriter writer(path);
  writer.write(
      {{"step", 10}, {"epoch", 1}, {"loss", 0.5}, {"lr", 0.1}, {"note", "x"}, {"ok", true}});
  writer.write({{"step", 10}, {"split", "eval"}, {"metrics", {{"accuracy", 0.75}}}});
  EXPECT_TRUE(log.read());
  EXPECT_EQ(log.curves().size(), 3U);
  EXPECT_EQ(last("loss", "train"), 0.5);
  EXPECT_EQ(last("accuracy", "eval"), 0.75);
  EXPECT_EQ(log.find("loss", "train")->curve.last().x, 10);
  EXPECT_STREQ(log.axis(), "step");
  EXPECT_EQ(log.last_epoch(), 1);
  writer.write({{"step", 20}, {"loss", std::nan("")}});
  EXPECT_TRUE(log.read());
  EXPECT_FALSE(log.read());
  EXPECT_EQ(log.find("loss", "train")->curve.odd(), 1);
  EXPECT_EQ(log.records(), 3);
}

TEST_F(MetricsLogTest, NamesMayHoldTheirSplit) {
  append(R"({"epoch":1,"train_loss":1.5,"test_accuracy":0.5,"training_speed":3})"
         "\n");
  log.read();
  EXPECT_STREQ(log.axis(), "epoch");
  EXPECT_EQ(last("loss", "train"), 1.5);
  EXPECT_EQ(last("accuracy", "test"), 0.5);
  EXPECT_EQ(last("training_speed", "train"), 3);
}

TEST_F(MetricsLogTest, ATornLineIsReadWhenItIsWhole) {
  append(R"({"step":1,"loss":1})"
         "\n"
         R"({"step":2,"lo)");
  log.read();
  EXPECT_EQ(last("loss", "train"), 1);
  append("ss\":2}\n");
  log.read();
  EXPECT_EQ(last("loss", "train"), 2);
  EXPECT_EQ(log.bad_lines(), 0);
}

TEST_F(MetricsLogTest, LinesThatAreNoneAreCounted) {
  append("{\"step\":1,\"loss\":1}\n\nno json\n[1]\n{\"step\":\n\xff\n{\"step\":2,\"loss\":2}\n");
  log.read();
  EXPECT_EQ(log.bad_lines(), 4);
  EXPECT_EQ(log.records(), 2);
  EXPECT_EQ(last("loss", "train"), 2);
}

TEST_F(MetricsLogTest, ALineWithoutEndCostsNoMemory) {
  append(std::string(6'000'000, 'x') + "\n{\"step\":2,\"loss\":2}\n");
  log.read();
  EXPECT_EQ(log.bad_lines(), 1);
  EXPECT_EQ(last("loss", "train"), 2);
}

TEST_F(MetricsLogTest, AFileThatWasCutIsReadAnew) {
  append("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n");
  log.read();
  std::ofstream(path, std::ios::trunc) << "{\"step\":1,\"loss\":7}\n";
  log.read();
  EXPECT_EQ(last("loss", "train"), 7);
  EXPECT_EQ(log.find("loss", "train")->curve.pieces().size(), 1U);
}

TEST_F(MetricsLogTest, NamesWithoutEndAreLeftOut) {
  for (int i = 0; i < 1000; ++i) {
    append("{\"step\":1,\"loss" + std::to_string(i) + "\":1}\n");
  }
  log.read();
  EXPECT_EQ(log.curves().size(), MetricsLog::kMostCurves);
}

}  // namespace
}  // namespace argosy::runs
