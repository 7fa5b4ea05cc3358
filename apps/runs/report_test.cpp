#include "apps/runs/report.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/text.h"
#include "argosy/runs/chart_data.h"
#include "argosy/runs/compare.h"

namespace argosy::runs {
namespace {

TEST(Sparkline, GoesFromLowToHigh) {
  BoundedCurve curve;
  EXPECT_EQ(sparkline(curve, 10, SparkStyle::kBlocks), "");
  for (int i = 0; i < 8; ++i) {
    curve.add(i, i);
  }
  EXPECT_EQ(sparkline(curve, 20, SparkStyle::kBlocks), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(curve, 4, SparkStyle::kBlocks), "▁▃▆█");
  EXPECT_EQ(sparkline(curve, 5, SparkStyle::kPlain), "_.-'\"");
  BoundedCurve flat;
  flat.add(1, 7);
  flat.add(2, 7);
  EXPECT_EQ(sparkline(flat, 5, SparkStyle::kPlain), "__");
}

TEST(Figures, KnowTheirUnitsAndWhatIsBetter) {
  EXPECT_EQ(figure_of("images_per_second").unit, "images/s");
  EXPECT_EQ(figure_of("input_wait").scale, 100);
  EXPECT_EQ(figure_of("top5_accuracy").title, "Top5 accuracy");
  EXPECT_EQ(figure_of("top5_accuracy").better, 1);
  EXPECT_EQ(figure_of("loss").better, -1);
  EXPECT_EQ(figure_of("temperature").better, 0);
}

TEST(Compare, NamesWhatDiffersAndNothingElse) {
  RunConfig a;
  a.options = {{"lr", 0.1}, {"model", {{"name", "resnet18"}, {"classes", 10}}}, {"only_a", 1}};
  a.started = std::chrono::system_clock::now();
  a.host.pid = 7;
  RunConfig b = a;
  b.started += std::chrono::hours(1);
  b.host.pid = 8;
  b.end(RunState::kFailed, "x", 1);
  a.environment = {{"MASTER_PORT", "5000"},
                   {"RANK", "0"},
                   {"TORCHELASTIC_RUN_ID", "a"},
                   {"OMP_NUM_THREADS", "1"}};
  b.environment = {{"MASTER_PORT", "6000"}, {"ARGOSY_RUN_ID", "b"}, {"OMP_NUM_THREADS", "1"}};
  EXPECT_TRUE(differences(a, b).empty()) << "a launcher's variables say nothing";
  b.environment["OMP_NUM_THREADS"] = "2";
  b.options = {{"lr", 0.01}, {"model", {{"name", "resnet18"}, {"classes", 100}}}, {"only_b", "x"}};
  b.seed = 3;
  std::vector<std::string> told;
  for (const Difference& one : differences(a, b)) {
    told.push_back(one.name + " " + one.a.value_or("-") + " " + one.b.value_or("-"));
  }
  EXPECT_THAT(told,
              ::testing::UnorderedElementsAre("environment.OMP_NUM_THREADS 1 2",
                                              "seed null 3",
                                              "options.lr 0.1 0.01",
                                              "options.model.classes 10 100",
                                              "options.only_a 1 -",
                                              "options.only_b - x"));
}

}  // namespace
}  // namespace argosy::runs
