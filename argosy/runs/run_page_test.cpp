// What a browser makes of the page: tests/peers/browser.sh.
#include "argosy/runs/run_page.h"

#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/events/jsonl_writer.h"
#include "argosy/events/timeline.h"
#include "argosy/runs/html.h"
#include "argosy/runs/page_parts.h"
#include "argosy/runs/picture_page.h"
#include "argosy/runs/run_config.h"
#include "argosy/runs/run_folder.h"

#include "tests/support/temp_dir.h"

namespace argosy::runs {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct RunPageTest : ::testing::Test {
  test::TempDir temp{};
  std::string folder = (temp.path() / "a run").string();
  RunConfig config = RunConfig::capture({.name = "a <b>&\"'", .command = {"train"}});

  void SetUp() override { write_run_config(folder, config); }
  std::string page() const {
    std::ifstream file(folder + "/index.html");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  nlohmann::json data() const {
    const std::string text = page();
    const size_t begin = text.find('>', text.find("id=\"data\"")) + 1;
    return nlohmann::json::parse(text.substr(begin, text.find("</script>", begin) - begin));
  }
};

TEST_F(RunPageTest, ARunWithoutAnythingHasAPage) {
  write_run_page(folder);
  EXPECT_THAT(page(), AllOf(HasSubstr("No figures yet"), HasSubstr("badge running")));
  EXPECT_EQ(data().at("charts").size(), 0U);
  EXPECT_TRUE(data().at("timeline").is_null());
  EXPECT_EQ(data().at("running"), true);
}

TEST_F(RunPageTest, ServersHaveATableAndCurvesOfTheirOwn) {
  events::JsonlWriter figures(folder + "/" + kServerFigures);
  for (int step = 100; step <= 300; step += 100) {
    for (const char* server : {"server 0", "server 1"}) {
      if (step == 200 && server == std::string("server 1")) {
        continue;  // it was dead
      }
      figures.write({{"step", step},
                     {"split", server},
                     {"metrics",
                      {{"columns_rows", 10 * step},
                       {"columns_bytes", 3'000'000},
                       {"pushes_per_second", 12.5},
                       {"workers_apart", 2}}}});
    }
  }
  write_servers_file(folder,
                     {{{"server", 0}, {"state", "alive"}, {"columns_bytes", 3'000'000}},
                      {{"server", 1}, {"state", "gone"}}});
  write_run_page(folder);
  EXPECT_THAT(page(),
              AllOf(HasSubstr("<h2>Servers</h2>"),
                    HasSubstr("id=\"server_charts\""),
                    HasSubstr("<td>gone</td>"),
                    HasSubstr("3.0 MB")));
  const nlohmann::json charts = data().at("server_charts");
  ASSERT_EQ(charts.size(), 4U);
  EXPECT_EQ(charts[0].at("title"), "Columns rows");
  EXPECT_EQ(charts[1].at("title"), "Columns memory");
  EXPECT_EQ(charts[1].at("unit"), "MB");
  EXPECT_EQ(charts[1].at("series")[0].at("points")[0], nlohmann::json::parse("[100, 3.0]"));
  EXPECT_EQ(charts[2].at("title"), "Workers apart");
  EXPECT_EQ(charts[3].at("title"), "Pushes");
  for (const nlohmann::json& chart : charts) {
    ASSERT_EQ(chart.at("series").size(), 2U);
    EXPECT_EQ(chart.at("series")[1].at("name"), "server 1");
    EXPECT_EQ(chart.at("series")[0].at("color"), 0);
    EXPECT_EQ(chart.at("series")[1].at("color"), 1);
    EXPECT_EQ(chart.at("series")[1].at("points").size(), 2U);
  }
  EXPECT_EQ(data().at("charts").size(), 0U) << "they are no curves of the training";
}

TEST_F(RunPageTest, ADamagedFileOfServersIsNone) {
  for (const char* text : {"", "{", "[1, \"a\"]", "{\"server\": 1}"}) {
    std::ofstream(folder + "/servers.json") << text;
    EXPECT_EQ(read_servers_file(folder).size(), 0U) << text;
    write_run_page(folder);
    EXPECT_THAT(page(), Not(HasSubstr("Servers")));
  }
}

TEST_F(RunPageTest, CurvesAreReadOnAndTheEndIsShown) {
  RunPage run_page(folder);
  events::JsonlWriter metrics(folder + "/metrics.jsonl");
  metrics.write({{"step", 1}, {"loss", 2.0}, {"input_wait", 0.25}});
  run_page.write();
  EXPECT_EQ(data().at("charts").at(0).at("series").at(0).at("points"),
            nlohmann::json::parse("[[1,2]]"));
  EXPECT_EQ(data().at("charts").at(1).at("series").at(0).at("points"),
            nlohmann::json::parse("[[1,25]]"));
  metrics.write({{"step", 2}, {"loss", 1.0}});
  metrics.write({{"step", 2}, {"split", "eval"}, {"loss", 1.5}});
  config.end(RunState::kFailed, "out of <memory>");
  write_run_config(folder, config);
  run_page.write();
  const nlohmann::json loss = data().at("charts").at(0);
  EXPECT_EQ(loss.at("title"), "Loss");
  EXPECT_EQ(loss.at("x"), "step");
  EXPECT_EQ(loss.at("series").at(0).at("points"), nlohmann::json::parse("[[1,2],[2,1]]"));
  EXPECT_EQ(loss.at("series").at(1).at("name"), "eval");
  EXPECT_EQ(data().at("running"), false);
  EXPECT_THAT(page(), AllOf(HasSubstr("badge failed"), HasSubstr("out of &lt;memory&gt;")));
}

TEST_F(RunPageTest, NothingFromOutsideIsMarkup) {
  const std::string evil = "</script><img src=x onerror=alert(1)>\"'\xff";
  config.options = {{evil, evil}};
  config.environment = {{"OMP_" + evil, evil}};
  config.command = {evil};
  config.message = evil;
  write_run_config(folder, config);
  events::JsonlWriter(folder + "/metrics.jsonl")
      .write({{"step", 1}, {"split", evil}, {"loss", 1}, {evil, 2}});
  events::JsonlWriter(folder + "/rank0.json").write({{evil, evil}});
  { events::Timeline(folder + "/timeline.json").add(evil, evil, {}, {}); }
  write_run_page(folder);
  EXPECT_THAT(page(), AllOf(HasSubstr("&lt;/script&gt;&lt;img"), Not(HasSubstr("<img"))));
  EXPECT_EQ(data().at("charts").size(), 2U);
  const std::string text = page();
  size_t scripts = 0;
  for (size_t at = text.find("</script>"); at != std::string::npos;
       at = text.find("</script>", at + 1)) {
    ++scripts;
  }
  EXPECT_EQ(scripts, 2U);
}

TEST_F(RunPageTest, NeedsNoNetwork) {
  write_run_page(folder);
  EXPECT_THAT(
      page(),
      AllOf(Not(HasSubstr("https:")), Not(HasSubstr("src=\"/")), Not(HasSubstr("@import"))));
}

TEST_F(RunPageTest, TimelinesOfRanksShareTheirAxis) {
  const auto start = std::chrono::steady_clock::now();
  for (const int rank : {0, 1}) {
    events::Timeline timeline(folder + "/timeline.rank" + std::to_string(rank) + ".json",
                              {.rank = rank});
    timeline.add("compute", "forward", start + rank * 1ms, start + rank * 1ms + 500us);
    timeline.add("compute", "backward", start + 2ms, start + 3ms);
  }
  write_run_page(folder);
  const nlohmann::json timeline = data().at("timeline");
  ASSERT_EQ(timeline.at("ranks").size(), 2U);
  EXPECT_EQ(timeline.at("names"), (nlohmann::json{"forward", "backward"}));
  // From where both have something: rank 1's first event.
  EXPECT_NEAR(timeline.at("length").get<double>(), 2000, 50);
  EXPECT_EQ(timeline.at("ranks").at(1).at("lanes").at(0).at("name"), "compute");
  EXPECT_EQ(timeline.at("ranks").at(1).at("lanes").at(0).at("spans").size(), 2U);
}

TEST_F(RunPageTest, ALongTimelineIsShownByItsEnd) {
  const auto start = std::chrono::steady_clock::now();
  {
    events::Timeline timeline(folder + "/timeline.json");
    for (int i = 0; i < 50'000; ++i) {
      timeline.add("compute", "step", start + i * 1ms, start + i * 1ms + 500us);
    }
  }
  std::ofstream(folder + "/timeline.json", std::ios::app) << "torn {\n{\"ph\":";
  const nlohmann::ordered_json timeline = timeline_json(folder);
  const auto& lane = timeline.at("ranks").at(0).at("lanes").at(0);
  EXPECT_EQ(lane.at("name"), "compute");
  EXPECT_GT(lane.at("spans").size(), 1000U);
  EXPECT_LE(lane.at("spans").size(), 4000U);
}

TEST_F(RunPageTest, PicturesAreTheLatestByName) {
  std::filesystem::create_directories(folder + "/samples");
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x20\0\0\0\x20", 24);
  for (int i = 0; i < 40; ++i) {
    std::ofstream(folder + "/samples/step " + std::to_string(i) + ".png") << png;
  }
  std::ofstream(folder + "/samples/zz.png") << "no picture";
  std::ofstream(folder + "/samples/notes.txt") << "no picture";
  const std::string part = samples_part(folder).html;
  EXPECT_THAT(part,
              AllOf(HasSubstr(">step 39<"),
                    HasSubstr(">step 17<"),
                    Not(HasSubstr(">step 9<")),
                    Not(HasSubstr("zz")),
                    HasSubstr("data:image/png;base64,iVBORw0KGgo")));
}

TEST_F(RunPageTest, SheetsShowTheirCaptionsTheLatestOpen) {
  const std::string evil = "</figcaption><img src=x>";
  for (int epoch = 1; epoch <= 30; ++epoch) {
    write_samples(folder,
                  "epoch " + std::to_string(epoch),
                  {{.png = "\x89PNG", .caption = evil, .mark = PagePicture::Mark::kWrong}});
  }
  std::ofstream(folder + "/samples/torn.json") << "[{\"png\": \"";
  std::ofstream(folder + "/samples/evil.json")
      << R"([{"png": "\"><script>", "caption": "", "mark": "?"}])";
  const std::string part = samples_part(folder).html;
  EXPECT_THAT(part,
              AllOf(HasSubstr("<details data-name=\"epoch 30\" open><summary>epoch 30<"),
                    HasSubstr("<details data-name=\"epoch 9\"><summary>epoch 9<"),
                    HasSubstr("<figcaption class=\"wrong\">&lt;/figcaption&gt;&lt;img src=x&gt;<"),
                    Not(HasSubstr("epoch 8")),
                    Not(HasSubstr("<script")),
                    Not(HasSubstr("torn"))));
}

TEST_F(RunPageTest, SamplesThatAreTooLargeAreNamed) {
  write_samples(folder, "epoch 1", {{.png = "\x89PNG", .caption = "small"}});
  write_run_page(folder);
  EXPECT_THAT(page(), AllOf(HasSubstr("small"), Not(HasSubstr("left out of the page"))));
  for (const int epoch : {2, 3, 4, 5, 6}) {
    write_samples(folder,
                  "epoch " + std::to_string(epoch),
                  {{.png = std::string(epoch == 3 ? 4 << 20 : 9 << 18, 'x')}});
  }
  ::testing::internal::CaptureStderr();
  RunPage run_page(folder);
  run_page.write();
  run_page.write();
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string said =
      "samples left out of the page: epoch 3.json (5.6 MB), epoch 2.json (3.1 MB). It shows files "
      "of at most 4.2 MB, 12.6 MB together";
  EXPECT_THAT(page(), AllOf(HasSubstr("S" + said.substr(1)), HasSubstr(">epoch 4<")));
  EXPECT_THAT(log, HasSubstr("[runs.page] " + folder + ": " + said));
  EXPECT_EQ(log.find("left out"), log.rfind("left out")) << "said once";
}

TEST_F(RunPageTest, APageOfPicturesHasPointsBarsAndNoScript) {
  const std::string path = folder + "/faces.html";
  const float nan = std::nanf("");
  write_picture_page(path,
                     {.title = "<faces>",
                      .note = "2 of 3",
                      .bars = {{"<cat>", 1000}, {"dog", 0}},
                      .pictures = {{.png = "\x89PNG",
                                    .caption = "off by <1>",
                                    .points = {1, 2, nan, 3},
                                    .true_points = {4.5, 5},
                                    .width = 96,
                                    .height = 48},
                                   {.caption = "damaged"}}});
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text,
              AllOf(HasSubstr("<h1>&lt;faces&gt;</h1>"),
                    HasSubstr("viewBox=\"0 0 96 48\""),
                    HasSubstr("<circle class=\"true\" cx=\"5\" cy=\"5.5\""),
                    HasSubstr("<circle class=\"said\" cx=\"1.5\" cy=\"2.5\""),
                    HasSubstr("off by &lt;1&gt;<"),
                    HasSubstr("<div class=\"none\">"),
                    HasSubstr(">&lt;cat&gt;</text>"),
                    HasSubstr(">1,000</text>")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("nan")), HasSubstr("● true")));
  write_picture_page(path, {.bars = std::vector<Bar>(102, {"a flower", 7})});
  std::ifstream again(path);
  const std::string many{std::istreambuf_iterator<char>(again), {}};
  EXPECT_THAT(many, HasSubstr("<title>a flower: 7</title>"));
  EXPECT_EQ(page_name("x.html"), "");
  EXPECT_EQ(page_name("x.png"), "x.png: expected a name that ends with .html");
  EXPECT_EQ(page_name(path), "") << "a page of ours";
  std::ofstream(path) << "<!doctype html><p>by hand";
  EXPECT_THAT(page_name(path), HasSubstr("is there and is not a page by Argosy"));
}

TEST_F(RunPageTest, NumbersAreWrittenForPeople) {
  EXPECT_EQ(shown_number(1234567), "1,234,567");
  EXPECT_EQ(shown_number(-1234.5), "-1,234");
  EXPECT_EQ(shown_number(0.123456), "0.1235");
  EXPECT_EQ(shown_number(0), "0");
  EXPECT_EQ(shown_value("peak_memory_bytes", 1.25e9), "1.2 GB");
  EXPECT_EQ(shown_value("input_wait", 0.125), "12.5 %");
  EXPECT_EQ(base64(std::as_bytes(std::span("Man", 3))), "TWFu");
  EXPECT_EQ(base64(std::as_bytes(std::span("Ma", 2))), "TWE=");
  EXPECT_EQ(base64(std::as_bytes(std::span("M", 1))), "TQ==");
}

TEST_F(RunPageTest, AFolderThatCannotBeWrittenIsTold) {
  std::filesystem::create_directory(folder + "/index.html");
  EXPECT_THROW(write_run_page(folder), DataError);
  EXPECT_THROW(write_run_page(folder + "/none"), DataError);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
  }
  EXPECT_EQ(files, 2U) << "a temporary file was left";
}

TEST(RunFolder, WhatOtherRanksAndServersLeftIsMovedAway) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  for (int rank = 0; rank < 3; ++rank) {
    write_rank_file(path, rank, {{"rank", rank}});
  }
  write_servers_file(path, nlohmann::ordered_json::array({{{"server", 0}}}));
  move_away_ranks(path, 1);
  move_away_servers(path);
  EXPECT_EQ(read_rank_files(path).size(), 1U);
  EXPECT_TRUE(read_servers_file(path).empty());
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "earlier.rank2.json"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "earlier.servers.json"));
}

TEST(RunFolder, TheFirstFailureIsFound) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  write_rank_file(path, 0, {{"rank", 0}});
  EXPECT_EQ(first_failure(path), std::nullopt);
  write_rank_file(
      path, 1, {{"rank", 1}, {"failed", "2026-03-01T12:00:02.000Z"}, {"error", "late"}});
  write_rank_file(
      path, 2, {{"rank", 2}, {"failed", "2026-03-01T12:00:01.000Z"}, {"error", "first"}});
  EXPECT_EQ(first_failure(path), "rank 2: first");
  EXPECT_EQ(first_failure(path, "2026-03-01T12:00:00.000Z"), std::nullopt);
}

}  // namespace
}  // namespace argosy::runs
