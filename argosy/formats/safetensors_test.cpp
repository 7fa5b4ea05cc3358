#include "argosy/formats/safetensors.h"

#include <fstream>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/damage_test_support.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string with_length(const std::string& json, const std::string& data = "") {
  std::string text;
  for (size_t i = 0; i < 8; ++i) {
    text.push_back(static_cast<char>(json.size() >> (8 * i)));
  }
  return text + json + data;
}

std::string error_of(const std::string& content) {
  const TestFile file(content, "a.safetensors");
  try {
    const SafetensorsFile opened(file.path());
    return "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file.path()));
    return error.what();
  }
}

/// The header of one tensor "w".
std::string one(const std::string& fields, const std::string& data = "12345678") {
  return error_of(with_length("{\"w\":{" + fields + "}}", data));
}

std::string file_of(const SafetensorsLayout& layout) {
  std::string data(static_cast<size_t>(layout.header.file_bytes - layout.header.data_offset), '\0');
  std::iota(data.begin(), data.end(), '\1');
  return layout.head + data;
}

SafetensorsLayout sample() {
  return lay_out_safetensors({{.name = "b", .type = SafetensorType::kU8, .shape = {3}},
                              {.name = "w", .type = SafetensorType::kF64, .shape = {2, 1}},
                              {.name = "none", .type = SafetensorType::kF32, .shape = {0, 7}},
                              {.name = "one", .type = SafetensorType::kBF16}},
                             {{"format", "pt"}, {"made \"by\"", "Ü"}});
}

TEST(Safetensors, WhatWasLaidOutIsRead) {
  const SafetensorsLayout layout = sample();
  const TestFile file(file_of(layout), "a.safetensors");
  const SafetensorsFile opened(file.path());
  const SafetensorsHeader& header = opened.header();
  ASSERT_EQ(header.entries.size(), 4U);
  EXPECT_EQ(header.entries[0].name, "b") << "the order of the names";
  EXPECT_EQ(header.entries[1].type, SafetensorType::kF64);
  EXPECT_THAT(header.entries[1].shape, ElementsAre(2, 1));
  EXPECT_EQ(header.entries[2].bytes, 0);
  EXPECT_EQ(header.entries[3].bytes, 2);
  EXPECT_THAT(header.metadata, ElementsAre(Pair("format", "pt"), Pair("made \"by\"", "Ü")));
  for (const SafetensorEntry& entry : header.entries) {
    EXPECT_EQ(entry.offset % element_bytes(entry.type), 0) << entry.name << " is not aligned";
  }
  std::array<std::byte, 2> two{};
  opened.read(header.entries[0], two, 1);
  EXPECT_EQ(two[0], std::byte{20}) << "16 bytes of w, 2 of one, then the second of b";
  EXPECT_THROW(opened.read(header.entries[0], two, 2), UsageError);
}

TEST(Safetensors, ALengthIsCheckedBeforeMemoryIsTaken) {
  const MemoryLimit limit;
  EXPECT_THAT(error_of("abc"), HasSubstr("expected at least 8 bytes, got 3"));
  EXPECT_THAT(error_of(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)),
              HasSubstr("expected a header of at most 2 bytes"));
  EXPECT_THAT(error_of(std::string("\x03\0\0\0\0\0\0\0{}", 10)), HasSubstr("got the length 3"));
}

TEST(Safetensors, AHeaderThatIsNoneIsRefused) {
  EXPECT_THAT(error_of(with_length("[1]")), HasSubstr("expected the header to begin with {"));
  EXPECT_THAT(error_of(with_length("{\"a\":")), HasSubstr("no JSON"));
  EXPECT_THAT(error_of(with_length("{} x")), HasSubstr("no JSON"));
  EXPECT_THAT(error_of(with_length("{\"a\":[[[[[[[[")), HasSubstr("got a list"));
  EXPECT_THAT(error_of(with_length("{\"a\":{\"dtype\":{")), HasSubstr("got an object"));
  EXPECT_THAT(error_of(with_length("{\"a\":null}")), HasSubstr("\"a\": expected"));
  EXPECT_THAT(error_of(with_length("{\"__metadata__\":{\"a\":1}}")), HasSubstr("got 1"));
  EXPECT_THAT(one(R"("dtype":"F64","shape":[1])"), HasSubstr("fewer fields"));
  EXPECT_THAT(one(R"("dtype":"F64","shape":[1],"data_offsets":[0,8],"x":1)"),
              HasSubstr("another field for \"x\""));
  EXPECT_THAT(one(R"("dtype":"F64","dtype":"F64")"), HasSubstr("a second one"));
  EXPECT_THAT(one(R"("dtype":"F64","shape":[-1],"data_offsets":[0,8])"), HasSubstr("negative"));
  EXPECT_THAT(one(R"("dtype":"F64","shape":[1.5],"data_offsets":[0,8])"), HasSubstr("fraction"));
  EXPECT_THAT(one(R"("dtype":"F64","shape":[1],"data_offsets":[0,8,9])"), HasSubstr("more than 2"));
  EXPECT_THAT(one(R"("dtype":"F64","shape":[1],"data_offsets":[8,0])"), HasSubstr("no pair"));
}

TEST(Safetensors, TypesThatAreNotReadAreNamed) {
  EXPECT_THAT(one(R"("dtype":"C64","shape":[1],"data_offsets":[0,8])"),
              AllOf(HasSubstr("\"w\": type C64 is not read"), HasSubstr("Convert")));
}

TEST(Safetensors, ShapesOffsetsAndLengthMustAgree) {
  EXPECT_THAT(one(R"("dtype":"F64","shape":[2],"data_offsets":[0,8])"),
              HasSubstr("F64 [2] does not fit its 8 bytes"));
  EXPECT_THAT(one(R"("dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,8])"),
              HasSubstr("does not fit"));
  EXPECT_THAT(one(R"("dtype":"U8","shape":[7],"data_offsets":[1,8])"),
              HasSubstr("begins at byte 1 of the data, expected 0"));
  EXPECT_THAT(one(R"("dtype":"U8","shape":[7],"data_offsets":[0,7])"),
              HasSubstr("expected 7 bytes of data, got 8"));
  EXPECT_THAT(one(R"("dtype":"U8","shape":[9],"data_offsets":[0,9])"),
              HasSubstr("expected 9 bytes of data, got 8"));
  const std::string tensor = R"({"dtype":"U8","shape":[5],"data_offsets":[0,5]})";
  EXPECT_THAT(error_of(with_length("{\"a\":" + tensor + ",\"b\":" + tensor + "}", "12345")),
              HasSubstr("begins at byte 0 of the data, expected 5"));
  EXPECT_THAT(error_of(with_length("{\"a\":" + tensor + ",\"a\":" + tensor + "}", "12345")),
              HasSubstr("\"a\": the name is there twice"));
}

TEST(Safetensors, NamesThatAFileCannotHaveAreRefused) {
  const auto error = [](const std::string& name) -> std::string {
    try {
      (void)lay_out_safetensors({{.name = "w"}, {.name = name}});
      return "nothing was thrown";
    } catch (const DataError& e) {
      return e.what();
    }
  };
  EXPECT_THAT(error("w"), HasSubstr("is there twice"));
  EXPECT_THAT(error("__metadata__"), HasSubstr("has a meaning of its own"));
  EXPECT_THAT(error("\xff"), HasSubstr("not UTF-8"));
}

TEST(Safetensors, DamageIsADataErrorOrNoMatter) {
  const std::string good = file_of(sample());
  const auto read = [](const std::string& path) { const SafetensorsFile file(path); };
  const Damage cut = truncate_everywhere(good, read, good.size());
  EXPECT_EQ(cut.accepted, 0);
  const Damage flipped = flip_at_random(good, read);
  EXPECT_GT(flipped.refused, 5'000);
}

}  // namespace
}  // namespace argosy::formats
