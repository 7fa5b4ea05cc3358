#include "argosy/comm/flight_recorder.h"

#include <fstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::comm {
namespace {

using ::testing::HasSubstr;

OperationEvent event(uint64_t id, std::string_view group = "world") {
  const auto now = std::chrono::steady_clock::now();
  return {.id = id,
          .group = group,
          .seq = static_cast<int64_t>(id) + 100,
          .op = "all_reduce",
          .dtype = "f32",
          .elements = 6,
          .bytes = 24,
          .peer = -1,
          .enqueued = now,
          .started = now,
          .ended = now,
          .error = {}};
}

nlohmann::json rows(const FlightRecorder& recorder) {
  return nlohmann::json::parse(recorder.to_json()).at("operations");
}

TEST(FlightRecorder, KeepsStatesOfEachOperation) {
  FlightRecorder recorder(3, "");
  for (uint64_t id = 0; id < 4; ++id) {
    recorder.on_enqueued(event(id));
  }
  recorder.on_started(event(0));
  recorder.on_ended(event(0));
  recorder.on_started(event(1));
  recorder.on_started(event(2));
  OperationEvent failed = event(2);
  failed.error = "rank 1 died";
  recorder.on_ended(failed);
  const nlohmann::json all = nlohmann::json::parse(recorder.to_json());
  EXPECT_EQ(all.at("rank"), 3);
  const nlohmann::json& list = all.at("operations");
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0].at("state"), "done");
  EXPECT_EQ(list[0].at("seq"), 100);
  EXPECT_EQ(list[0].at("group"), "world");
  EXPECT_EQ(list[0].at("dtype"), "f32");
  EXPECT_EQ(list[0].at("bytes"), 24);
  EXPECT_GE(list[0].at("ended_us"), list[0].at("started_us"));
  EXPECT_EQ(list[1].at("state"), "running");
  EXPECT_FALSE(list[1].contains("ended_us"));
  EXPECT_EQ(list[2].at("state"), "failed");
  EXPECT_EQ(list[2].at("error"), "rank 1 died");
  EXPECT_EQ(list[3].at("state"), "queued");
  EXPECT_FALSE(list[3].contains("started_us"));
}

TEST(FlightRecorder, TheTimesOfARecordFitTogether) {
  FlightRecorder recorder(0, "");
  for (uint64_t id = 0; id < FlightRecorder::kCapacity; ++id) {
    OperationEvent each = event(id);
    each.started += std::chrono::milliseconds(2);
    each.ended += std::chrono::milliseconds(5);
    recorder.on_enqueued(each);
    recorder.on_started(each);
    recorder.on_ended(each);
  }
  for (const nlohmann::json& row : rows(recorder)) {
    const auto us = [&](const char* key) { return row.at(key).get<int64_t>(); };
    EXPECT_EQ(us("started_us") - us("enqueued_us"), 2000);
    EXPECT_EQ(us("ended_us") - us("started_us"), 3000);
  }
}

TEST(FlightRecorder, KeepsTheLast1024InOrder) {
  FlightRecorder recorder(0, "");
  for (uint64_t id = 0; id < 1500; ++id) {
    recorder.on_enqueued(event(id));
  }
  const nlohmann::json list = rows(recorder);
  ASSERT_EQ(list.size(), FlightRecorder::kCapacity);
  EXPECT_EQ(list.front().at("seq"), 100 + 1500 - 1024);
  EXPECT_EQ(list.back().at("seq"), 100 + 1499);
  recorder.on_ended(event(1));  // long overwritten: must not mark its successor as done
  EXPECT_EQ(rows(recorder)[1025 - (1500 - 1024)].at("state"), "queued");
}

TEST(FlightRecorder, LongGroupNamesAreCutNotKeptByReference) {
  FlightRecorder recorder(0, "");
  {
    const std::string name(200, 'g');
    recorder.on_enqueued(event(0, name));
  }
  EXPECT_EQ(rows(recorder)[0].at("group"), std::string(47, 'g'));
}

TEST(FlightRecorder, FirstErrorDumpsIntoTheFolder) {
  const test::TempDir folder;
  FlightRecorder recorder(5, folder.path().string());
  recorder.on_enqueued(event(0));
  OperationEvent failed = event(0);
  failed.error = "[comm.all_reduce] rank 2 died";
  recorder.on_ended(failed);
  std::ifstream file(folder.path() / "flight_rank5.json");
  const nlohmann::json all = nlohmann::json::parse(file);
  EXPECT_EQ(all.at("operations")[0].at("error"), "[comm.all_reduce] rank 2 died");
  EXPECT_FALSE(exists(folder.path() / "flight_rank5.json.tmp"));
}

TEST(FlightRecorder, GroupsThatShareAProcessHaveFilesOfTheirOwn) {
  const test::TempDir folder;
  for (const char* const group : {"world", "group 1"}) {
    FlightRecorder recorder(5, folder.path().string(), group);
    recorder.on_enqueued(event(0, group));
    OperationEvent failed = event(0, group);
    failed.error = "it failed";
    recorder.on_ended(failed);
  }
  const auto group_in = [&](const char* name) {
    std::ifstream file(folder.path() / name);
    return nlohmann::json::parse(file).at("operations")[0].at("group");
  };
  EXPECT_EQ(group_in("flight_rank5.json"), "world");
  EXPECT_EQ(group_in("flight_rank5_group_1.json"), "group 1");
}

TEST(FlightRecorder, TextShowsTheNewest) {
  FlightRecorder recorder(0, "");
  for (uint64_t id = 0; id < 30; ++id) {
    recorder.on_enqueued(event(id));
  }
  const std::string text = recorder.to_text(2);
  EXPECT_THAT(text, HasSubstr("world seq 128 all_reduce f32 24 B: queued"));
  EXPECT_THAT(text, HasSubstr("seq 129"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("seq 127")));
}

TEST(FlightRecorder, DumpNamesThePathItCannotWrite) {
  const FlightRecorder recorder(0, "");
  try {
    recorder.dump("/dev/null/folder/flight.json");
    FAIL();
  } catch (const CommError& e) {
    EXPECT_THAT(e.what(), HasSubstr("cannot write /dev/null/folder/flight.json: Not a directory"));
  }
}

TEST(FlightRecorder, ManyThreadsMayRecord) {
  FlightRecorder recorder(0, "");
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 500; ++i) {
        const OperationEvent mine = event(4 * i + t);
        recorder.on_enqueued(mine);
        recorder.on_started(mine);
        recorder.on_ended(mine);
        if (i % 100 == 0) {
          EXPECT_FALSE(recorder.to_json().empty());
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(rows(recorder).size(), FlightRecorder::kCapacity);
}

}  // namespace
}  // namespace argosy::comm
