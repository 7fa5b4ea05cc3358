#include "argosy/events/timeline.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::events {
namespace {

using namespace std::chrono_literals;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct TimelineTest : ::testing::Test {
  test::TempDir folder{};
  std::string path = (folder.path() / "deep/timeline.json").string();
  Timeline::Moment start = std::chrono::steady_clock::now();
};

TEST_F(TimelineTest, EventsHaveTheirRankLaneAndMicroseconds) {
  {
    Timeline timeline(path, {.rank = 3});
    timeline.add("compute", "forward", start, start + 1500us);
    timeline.add("input", "wait \"a\"\n", start + 2ms, start + 2ms + 250ns);
    timeline.add("compute", "backward", start + 1500us, start + 1us);  // clocks that jump
  }
  const nlohmann::json events = nlohmann::json::parse(text_of(path));
  nlohmann::json spans = nlohmann::json::array();
  nlohmann::json names;
  for (const nlohmann::json& event : events) {
    EXPECT_EQ(event.at("pid"), 3);
    if (event.at("ph") == "X") {
      spans.push_back(event);
    } else if (event.at("name") == "thread_name" || event.at("name") == "process_name") {
      names[event.at("args").at("name").get<std::string>()] = event.at("tid");
    }
  }
  EXPECT_EQ(names, (nlohmann::json{{"rank 3", 0}, {"compute", 1}, {"input", 2}}));
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].at("dur"), 1500.0);
  EXPECT_EQ(spans[0].at("tid"), 1);
  EXPECT_EQ(spans[1].at("name"), "wait \"a\"\n");
  EXPECT_EQ(spans[1].at("tid"), 2);
  EXPECT_EQ(spans[1].at("dur"), 0.25);
  EXPECT_EQ(spans[1].at("ts").get<int64_t>() - spans[0].at("ts").get<int64_t>(), 2000);
  EXPECT_EQ(spans[2].at("dur"), 0.0);
}

TEST_F(TimelineTest, WithoutItsEndTheFileIsAnArrayThatIsNotClosed) {
  const pid_t child = fork();
  if (child == 0) {
    Timeline timeline(path, {.buffer_bytes = 1});
    for (int i = 0; i < 100; ++i) {
      timeline.add("compute", "step", start, start + 1us);
    }
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const nlohmann::json events = nlohmann::json::parse(text_of(path) + "]");
  EXPECT_EQ(std::ranges::count(events, "X", [](const auto& e) { return e.at("ph"); }), 100);
}

TEST_F(TimelineTest, GathersAtMostItsBufferAndItsInterval) {
  Timeline timeline(path, {.buffer_bytes = 1000, .flush_interval = 1h});
  const size_t before = text_of(path).size();
  timeline.add("compute", "step", start, start + 1us);
  EXPECT_EQ(text_of(path).size(), before);
  for (int i = 0; i < 20; ++i) {
    timeline.add("compute", "step", start, start + 1us);
  }
  EXPECT_GT(text_of(path).size(), before + 900);
  const size_t now = text_of(path).size();
  timeline.add("compute", "late", start + 2h, start + 2h);
  EXPECT_GT(text_of(path).size(), now);
}

TEST_F(TimelineTest, StopsAtItsMostEvents) {
  {
    Timeline timeline(path, {.most_events = 5});
    for (int i = 0; i < 9; ++i) {
      timeline.add("compute", "step", start, start + 1us);
    }
    timeline.close();
    timeline.add("compute", "after the end", start, start);
    timeline.close();
  }
  const nlohmann::json events = nlohmann::json::parse(text_of(path));
  EXPECT_EQ(std::ranges::count(events, "X", [](const auto& e) { return e.at("ph"); }), 5);
}

TEST_F(TimelineTest, LanesWithoutEndEndInOne) {
  {
    Timeline timeline(path);
    for (int i = 0; i < 1000; ++i) {
      timeline.add("lane " + std::to_string(i), "x", start, start);
    }
  }
  int most = 0;
  for (const nlohmann::json& event : nlohmann::json::parse(text_of(path))) {
    most = std::max(most, event.at("tid").get<int>());
  }
  EXPECT_EQ(most, 257);
}

TEST_F(TimelineTest, ThreadsMayWriteAtOnce) {
  {
    Timeline timeline(path, {.buffer_bytes = 500});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          const auto span = timeline.span("lane", "work");
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  const nlohmann::json events = nlohmann::json::parse(text_of(path));
  EXPECT_EQ(std::ranges::count(events, "X", [](const auto& e) { return e.at("ph"); }), 800);
}

TEST_F(TimelineTest, AnOldFileIsReplaced) {
  { Timeline first(path); }
  { Timeline second(path); }
  EXPECT_EQ(nlohmann::json::parse(text_of(path)).size(), 2U);
}

TEST_F(TimelineTest, NamesThePathThatCannotBeWritten) {
  EXPECT_THROW(Timeline("/dev/null/timeline.json"), DataError);
  EXPECT_THROW(Timeline(path, {.most_events = 0}), UsageError);
}

}  // namespace
}  // namespace argosy::events
