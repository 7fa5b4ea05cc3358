#include "argosy/formats/records.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/damage_test_support.h"
#include "argosy/formats/packed_sample.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file's bytes with these records.
std::string record_file(const std::vector<std::string>& payloads,
                        const std::string& metadata = "{}") {
  const TestFile file("");
  RecordWriter out(file.path(), metadata);
  for (const std::string& payload : payloads) {
    out.append(bytes_of(payload));
  }
  out.finish();
  return content_of(file.path());
}

const std::vector<std::string>& some() {
  static const std::vector<std::string> payloads{
      "first", "", std::string(1000, 'x'), "12345678", "last one"};
  return payloads;
}

/// Reads everything.
void read_all(const std::string& path) {
  const RecordReader in(path);
  for (int64_t i = 0; i < in.size(); ++i) {
    (void)in.record(i);
  }
}

DataError error_of(const std::string& content) {
  const TestFile file(content, "train.rec");
  try {
    read_all(file.path());
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, file.path());
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

TEST(Records, ComeBackByIndexAndInAnyOrder) {
  const TestFile file(record_file(some(), R"({"classes": 3})"));
  const RecordReader in(file.path());
  EXPECT_EQ(in.metadata(), R"({"classes": 3})");
  ASSERT_EQ(in.size(), 5);
  for (const int64_t i : {4, 0, 2, 1, 3, 2}) {
    EXPECT_EQ(text_of(in.record(i)), some()[static_cast<size_t>(i)]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(in.record(i).data()) % 8, 0U);
  }
  EXPECT_THROW((void)in.record(5), UsageError);
  EXPECT_THROW((void)in.record(-1), UsageError);
}

TEST(Records, NoneAndNoMetadataAreAFileToo) {
  const TestFile file(record_file({}, ""));
  const RecordReader in(file.path());
  EXPECT_EQ(in.size(), 0);
  EXPECT_EQ(in.metadata(), "");
}

TEST(Records, TheLayoutIsTheOneThatTheHeaderDescribes) {
  const std::string content = record_file({"abc"}, "{\"a\":1}");
  EXPECT_EQ(content.substr(0, 8), "ARGOREC\n");
  EXPECT_EQ(content.substr(8, 8), std::string("\1\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(content.substr(16, 8), std::string("\7\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(content.substr(32, 8), std::string("{\"a\":1}\0", 8));
  EXPECT_EQ(content.substr(40, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(content.substr(56, 8), std::string("abc\0\0\0\0\0", 8));
  EXPECT_EQ(content.substr(64, 8),
            std::string("\x28\0\0\0\0\0\0\0", 8));  // index: the record at 40
  EXPECT_EQ(content.substr(72, 8), std::string("\x40\0\0\0\0\0\0\0", 8));  // the index at 64
  EXPECT_EQ(content.substr(80, 8), std::string("\1\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(content.substr(96), "ARGOEND\n");
}

TEST(Records, ManyReadersShareOneFile) {
  const TestFile file(record_file(some()));
  const RecordReader in(file.path());
  std::vector<std::jthread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      const RecordReader own(file.path());
      for (int i = 0; i < 2'000; ++i) {
        const auto at = static_cast<size_t>(i) % some().size();
        wrong[t] += text_of(in.record(static_cast<int64_t>(at))) != some()[at] ? 1 : 0;
        wrong[t] += text_of(own.record(static_cast<int64_t>(at))) != some()[at] ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_THAT(wrong, testing::Each(0));
}

class RecordFolder : public testing::Test {
 protected:
  TestFile old_{"old", "train.rec"};
  std::string path_ = old_.path();
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(fs::path(path_).parent_path())) {
      found.push_back(entry.path().filename());
    }
    return found;
  }
};

TEST_F(RecordFolder, AnUnfinishedWriterLeavesTheOldFileAndNothingElse) {
  {
    RecordWriter out(path_, "{}");
    out.append(bytes_of("new"));
    EXPECT_EQ(content_of(path_), "old");
  }
  EXPECT_EQ(content_of(path_), "old");
  EXPECT_THAT(names(), ElementsAre("train.rec"));
}

TEST_F(RecordFolder, FinishReplacesTheOldFileAtOnce) {
  RecordWriter out(path_, "{}");
  out.append(bytes_of("new"));
  EXPECT_EQ(out.size(), 1);
  out.finish();
  EXPECT_THAT(names(), ElementsAre("train.rec"));
  EXPECT_EQ(text_of(RecordReader(path_).record(0)), "new");
  EXPECT_THROW(out.append(bytes_of("late")), UsageError);
  EXPECT_THROW(out.finish(), UsageError);
}

TEST_F(RecordFolder, TwoWritersDoNotMix) {
  RecordWriter one(path_, "{}");
  RecordWriter two(path_, "{}");
  one.append(bytes_of("one"));
  two.append(bytes_of("two"));
  two.finish();
  one.finish();
  EXPECT_EQ(text_of(RecordReader(path_).record(0)), "one");
}

TEST_F(RecordFolder, ARecordLargerThanTheWritersBufferIsWhole) {
  const std::string large(3'000'001, 'L');
  RecordWriter out(path_, "{}");
  out.append(bytes_of("small"));
  out.append(bytes_of(large));
  out.append(bytes_of("after"));
  out.finish();
  const RecordReader in(path_);
  EXPECT_EQ(text_of(in.record(1)), large);
  EXPECT_EQ(text_of(in.record(2)), "after");
}

// A limit on the file's size stands for a full disk.
TEST_F(RecordFolder, AWriterThatFailedOnceCannotFinish) {
  RecordWriter out(path_, "{}");
  const std::string payload(3 << 20, 'x');  // beyond the writer's buffer
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(out.append(bytes_of(payload)), DataError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_action);
  // There is room again, but what was to be in the file is not.
  EXPECT_THROW(out.append(bytes_of("small")), DataError);
  EXPECT_THROW(out.finish(), DataError);
  EXPECT_TRUE(content_of(path_) == "old") << "3 MB are not to be printed";
}

TEST_F(RecordFolder, WhatCannotBeOpenedSaysWhy) {
  EXPECT_THROW(RecordWriter("/nonexistent/a.rec", "{}"), DataError);
  try {
    const RecordReader in("/nonexistent/a.rec");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(
        error.what(),
        "[formats.open] /nonexistent/a.rec: cannot open: No such file or directory (ENOENT)");
  }
  const std::string pipe = path_ + ".fifo";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(RecordReader{pipe}, DataError);  // and does not wait for a writer
  EXPECT_THROW(RecordReader{fs::path(path_).parent_path().string()}, DataError);
}

TEST(RecordDamage, OtherFilesAndVersionsAreNamed) {
  EXPECT_THAT(error_of("").what(), HasSubstr("not a record file"));
  EXPECT_THAT(error_of(std::string(100, 'x')).what(), HasSubstr("not a record file"));
  std::string newer = record_file(some());
  newer[8] = 2;
  const DataError error = error_of(newer);
  EXPECT_THAT(error.what(), HasSubstr("version 2 of the format: this program reads version 1"));
  EXPECT_EQ(error.place().offset, 8);
}

TEST(RecordDamage, ATornFileSaysInWhichRecord) {
  const std::string good = record_file(some());
  // Header and metadata take 40 bytes, the records 24, 16, 1016, …
  const DataError error = error_of(good.substr(0, 40 + 24 + 16 + 500));
  EXPECT_THAT(error.what(), HasSubstr("breaks off in or behind record 2"));
  EXPECT_EQ(error.place().offset, 80);
  EXPECT_EQ(error.place().index, 2);
}

TEST(RecordDamage, ADamagedRecordIsNamedAndTheOthersAreRead) {
  std::string bad = record_file(some());
  bad[40 + 24 + 16 + 16 + 7] ^= 1;  // in the payload of record 2
  const TestFile file(bad);
  const RecordReader in(file.path());
  try {
    (void)in.record(2);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the record's checksum is wrong"));
    EXPECT_EQ(error.place().index, 2);
    EXPECT_EQ(error.place().offset, 80);
  }
  EXPECT_EQ(text_of(in.record(1)), "");
  EXPECT_EQ(text_of(in.record(4)), "last one");
}

TEST(RecordDamage, RecordsThatChangedPlacesAreSeen) {
  std::string swapped = record_file({"one", "two"});
  std::swap_ranges(swapped.begin() + 40, swapped.begin() + 64, swapped.begin() + 64);
  EXPECT_THAT(error_of(swapped).what(), HasSubstr("the record's checksum is wrong"));
}

TEST(RecordDamage, LengthsThatLieAreSeen) {
  const std::string good = record_file(some());
  std::string bad = good;
  std::memset(bad.data() + 16, 0xff, 8);  // bytes of metadata
  EXPECT_THAT(error_of(bad).what(), HasSubstr("bytes of metadata"));
  bad = good;
  std::memset(bad.data() + 40, 0xff, 8);  // bytes of record 0
  EXPECT_THAT(error_of(bad).what(), HasSubstr("the record claims 18446744073709551615 bytes"));
  bad = good;
  std::memset(bad.data() + bad.size() - 24, 0xff, 8);  // number of records
  EXPECT_THAT(error_of(bad).what(), HasSubstr("do not fit the file"));
  bad = good;
  bad[bad.size() - 32 - 40] ^= 8;  // offset of record 0
  EXPECT_THAT(error_of(bad).what(), HasSubstr("the index's checksum is wrong"));
}

TEST(RecordDamage, EveryTruncationIsSeen) {
  EXPECT_EQ(truncate_everywhere(record_file(some()), read_all).accepted, 0);
}

TEST(RecordDamage, EveryChangedByteIsSeen) {
  const std::string good = record_file(some(), R"({"kind": "test"})");
  const MemoryFile file;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    file.set(bad);
    EXPECT_THROW(read_all(file.path()), DataError) << "byte " << i;
  }
  EXPECT_EQ(flip_at_random(good, read_all).accepted, 0);
}

PackedSample sample() {
  return {.kind = PictureKind::kPixels,
          .height = 2,
          .width = 1,
          .channels = 3,
          .labels = {7, -1},
          .points = {0.5F, -2, 1e9F},
          .name = "jpg/image_00001.jpg",
          .picture = bytes_of("rgbRGB")};
}

TEST(PackedSample, ComesBackAsItWas) {
  const std::vector<std::byte> record = pack_sample(sample());
  const PackedSample back = unpack_sample(record);
  EXPECT_EQ(back.kind, PictureKind::kPixels);
  EXPECT_EQ(back.height, 2);
  EXPECT_EQ(back.width, 1);
  EXPECT_EQ(back.channels, 3);
  EXPECT_THAT(back.labels, ElementsAre(7, -1));
  EXPECT_THAT(back.points, ElementsAre(0.5F, -2, 1e9F));
  EXPECT_EQ(back.name, "jpg/image_00001.jpg");
  EXPECT_EQ(text_of(back.picture), "rgbRGB");
  const std::vector<std::byte> plain = pack_sample({.picture = bytes_of("JPEG")});
  EXPECT_EQ(unpack_sample(plain).kind, PictureKind::kEncoded);
  EXPECT_TRUE(unpack_sample(plain).labels.empty());
}

TEST(PackedSample, ShapesThatDoNotFitAreRefused) {
  PackedSample wrong = sample();
  wrong.height = 3;
  EXPECT_THROW((void)pack_sample(wrong), UsageError);
  wrong = sample();
  wrong.channels = 2;
  EXPECT_THROW((void)pack_sample(wrong), UsageError);
  EXPECT_THROW((void)pack_sample({.height = 1, .picture = bytes_of("JPEG")}), UsageError);
}

TEST(PackedSample, AnyDamageIsADataErrorOrASample) {
  const std::vector<std::byte> record = pack_sample(sample());
  const auto unpack = [](const std::string& path) {
    const std::string content = content_of(path);
    (void)unpack_sample(bytes_of(content), path);
  };
  EXPECT_EQ(truncate_everywhere(text_of(record), unpack).accepted, 0);
  EXPECT_GT(flip_at_random(text_of(record), unpack).refused, 1'000);
  try {
    (void)unpack_sample(bytes_of("short"), "train.rec", 3);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "[formats.packed_sample] train.rec: expected a sample's header of 32 bytes, got 5 "
                 "(sample 3)");
  }
}

TEST(PackedSet, ComesBackAsItWas) {
  const PackedSet set{.kind = "keypoints",
                      .classes = {"a", "\xc3\xa9 \"b\""},
                      .groups = {"g"},
                      .point_names = {"eye"},
                      .shape = {96, 96, 1},
                      .splits = {{"train", 60'000}, {"test", 0}}};
  const PackedSet back = unpack_metadata(pack_metadata(set));
  EXPECT_EQ(back.kind, set.kind);
  EXPECT_EQ(back.classes, set.classes);
  EXPECT_EQ(back.point_names, set.point_names);
  EXPECT_EQ(back.shape, set.shape);
  EXPECT_EQ(back.groups, set.groups);
  EXPECT_EQ(back.splits, set.splits);
  EXPECT_NO_THROW(
      (void)unpack_metadata(pack_metadata({.kind = "\xff"})));  // a name that is no UTF-8
}

TEST(PackedSet, AFileOfVersion1IsReadAsOneWithoutSplits) {
  const PackedSet set = unpack_metadata(
      R"({"format": "argosy.samples", "version": 1, "kind": "own", "classes": ["a"], "point_names": [], "shape": [1, 2, 3]})");
  EXPECT_THAT(set.classes, ElementsAre("a"));
  EXPECT_THAT(set.shape, ElementsAre(1, 2, 3));
  EXPECT_TRUE(set.splits.empty() && set.groups.empty());
}

TEST(PackedSet, AnotherVersionIsNamedWithThoseThatAreRead) {
  try {
    (void)unpack_metadata(R"({"format": "argosy.samples", "version": 3})", "train.rec");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "[formats.packed_sample] train.rec: metadata of \"argosy.samples\", version 3: "
                 "this program reads \"argosy.samples\", versions 1 and 2");
  }
}

TEST(PackedSet, SplitsThatNobodyCouldReadAreRefused) {
  for (const std::vector<PackedSplit>& splits : {std::vector<PackedSplit>{{"train", -1}},
                                                 {{"train", 1}, {"valid", 2}, {"train", 3}},
                                                 {{"train", std::numeric_limits<int64_t>::max()}},
                                                 std::vector<PackedSplit>(1001)}) {
    EXPECT_THROW((void)pack_metadata({.splits = splits}), UsageError) << splits.size();
  }
  for (const char* splits : {R"({"name": "a", "samples": 1})",
                             R"([1])",
                             R"([{"name": "a"}])",
                             R"([{"samples": 1}])",
                             R"([{"name": 1, "samples": 1}])",
                             R"([{"name": "a", "samples": -1}])",
                             R"([{"name": "a", "samples": 1.5}])",
                             R"([{"name": "a", "samples": 18446744073709551615}])",
                             R"([{"name": "a", "samples": 9223372036854775807}])",
                             R"([{"name": "a", "samples": 1}, {"name": "a", "samples": 1}])"}) {
    const std::string json =
        std::string(
            R"({"format": "argosy.samples", "version": 2, "kind": "k", "classes": [], "groups": [], "point_names": [], "shape": [], "splits": )") +
        splits + "}";
    EXPECT_THROW((void)unpack_metadata(json, "train.rec"), DataError) << splits;
  }
}

TEST(PackedSet, OtherMetadataIsRefused) {
  for (
      const char* json :
      {"",
       "[]",
       "{}",
       "nonsense",
       R"({"format": "argosy.samples", "version": 2})",
       R"({"format": "x", "version": 1})",
       R"({"format": "argosy.samples", "version": 1, "kind": 3, "classes": [], "point_names": [], "shape": []})",
       R"({"format": "argosy.samples", "version": 1, "kind": "k", "classes": [1], "point_names": [], "shape": []})"}) {
    EXPECT_THROW((void)unpack_metadata(json, "train.rec"), DataError) << json;
  }
}

TEST(PackedSet, MetadataOfAMillionLevelsIsRefusedAndNoStackOverflows) {
  constexpr size_t kLevels = 1'000'000;
  const std::string deep = std::string(kLevels, '[') + std::string(kLevels, ']');
  for (const std::string& json :
       {R"({"format": )" + deep + R"(, "version": 1})",
        R"({"format": "argosy.samples", "version": )" + deep + "}",
        R"({"format": "argosy.samples", "version": 1, "kind": )" + deep + "}"}) {
    EXPECT_THROW((void)unpack_metadata(json, "train.rec"), DataError);
  }
}

}  // namespace
}  // namespace argosy::formats
