#include "argosy/rpc/codec.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "rpc.pb.h"

namespace argosy::rpc {
namespace {

using ::testing::HasSubstr;

template <typename T>
T there_and_back(const T& value) {
  Parcel parcel;
  Writer writer(parcel);
  Codec<T>::put(writer, value);
  wire::List read;  // as the wire has it
  EXPECT_TRUE(read.ParseFromString(parcel.values().SerializeAsString()));
  parcel.values().Swap(&read);
  Reader reader(parcel);
  T back = Codec<T>::take(reader);
  EXPECT_EQ(reader.left(), 0U);
  return back;
}

enum class Color : int16_t { kRed = -3, kBlue = 7 };

struct Row {
  int64_t id = 0;
  std::vector<float> values{};
  std::optional<std::string> note{};
  auto fields() { return std::tie(id, values, note); }
  bool operator==(const Row&) const = default;
};

/// What reading `value` as T says.
template <typename T, typename From>
std::string complaint(const From& value) {
  Parcel parcel;
  Writer writer(parcel);
  Codec<From>::put(writer, value);
  Reader reader(parcel);
  try {
    (void)Codec<T>::take(reader);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Codec, NumbersComeBackToTheBit) {
  EXPECT_EQ(there_and_back(true), true);
  for (const int64_t value : {std::numeric_limits<int64_t>::min(),
                              int64_t{-1},
                              int64_t{0},
                              std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(there_and_back(value), value);
  }
  EXPECT_EQ(there_and_back(std::numeric_limits<uint64_t>::max()),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(there_and_back(int8_t{-128}), -128);
  EXPECT_EQ(there_and_back(0.1F), 0.1F);
  EXPECT_EQ(there_and_back(std::numeric_limits<double>::denorm_min()),
            std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(there_and_back(-0.0)));
  EXPECT_TRUE(std::isnan(there_and_back(std::nan(""))));
  EXPECT_EQ(there_and_back(Color::kRed), Color::kRed);
}

TEST(Codec, WhatIsMadeOfPartsComesBack) {
  EXPECT_EQ(there_and_back(std::string("a\0b\xff", 4)), std::string("a\0b\xff", 4));
  EXPECT_EQ(there_and_back(std::vector<float>{1, -2.5F}), (std::vector<float>{1, -2.5F}));
  EXPECT_EQ(there_and_back(std::vector<int64_t>{}), std::vector<int64_t>{});
  EXPECT_EQ(there_and_back(std::vector<bool>{true, false}), (std::vector<bool>{true, false}));
  EXPECT_EQ(there_and_back(std::vector<std::string>{"x", ""}), (std::vector<std::string>{"x", ""}));
  const std::tuple<int, std::string, std::vector<Color>> tuple{3, "y", {Color::kBlue}};
  EXPECT_EQ(there_and_back(tuple), tuple);
  const std::map<std::string, std::pair<int, double>> map{{"a", {1, 2.5}}, {"b", {3, 4.5}}};
  EXPECT_EQ(there_and_back(map), map);
  const std::unordered_map<int, std::array<int, 2>> hashed{{1, {2, 3}}};
  EXPECT_EQ(there_and_back(hashed), hashed);
  const std::vector<Row> rows{{.id = 4, .values = {1, 2}, .note = "n"}, {.id = 5}};
  EXPECT_EQ(there_and_back(rows), rows);
}

TEST(Codec, AWholeNumberIsADoubleWhereThatIsExact) {
  EXPECT_EQ(complaint<double>(int64_t{1} << 53), "");
  EXPECT_THAT(complaint<double>((int64_t{1} << 53) + 1), HasSubstr("double holds exactly"));
  EXPECT_EQ(complaint<uint8_t>(255), "");
  EXPECT_EQ(complaint<int64_t>(uint64_t{7}), "");
}

TEST(Codec, AnotherTypeIsNamed) {
  EXPECT_THAT(complaint<int>(std::string("seven")),
              HasSubstr("expected a whole number, got the text \"seven\""));
  EXPECT_THAT(complaint<int>(2.5), HasSubstr("got the number 2.5"));
  EXPECT_THAT(complaint<uint8_t>(256), HasSubstr("expected a number that fits u8, got 256"));
  EXPECT_THAT(complaint<uint32_t>(-1), HasSubstr("a whole number of 0 or more"));
  EXPECT_THAT(complaint<std::vector<float>>(std::vector<double>{1}),
              HasSubstr("expected a vector of f32, got a vector of f64"));
  EXPECT_THAT((complaint<std::pair<int, int>>(std::tuple(1, 2, 3))),
              HasSubstr("expected a list of 2, got one of 3"));
  EXPECT_THAT((complaint<std::array<int, 3>>(std::tuple(1, 2))), HasSubstr("nothing more"));
  EXPECT_THAT(complaint<bool>(1), HasSubstr("expected a bool, got the number 1"));
  EXPECT_THAT(complaint<std::string>(std::string("\x1b[31m")), "");
  EXPECT_THAT(complaint<int>(std::string("\x1b[31m")), HasSubstr("\"?[31m\""));
}

// What a stranger may send in a message of a few bytes.
TEST(Codec, ValuesThatAreTooLargeForAMessageAreRefused) {
  Parcel parcel;
  Writer writer(parcel);
  Codec<std::vector<float>>::put(writer, std::vector<float>(100));
  parcel.check_size();
  parcel.check_size(500);
  try {
    parcel.check_size(400);  // and what describes them
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Memory or tensors"));
    EXPECT_THAT(error.what(), HasSubstr("largest_call_bytes"));
  }
}

TEST(Codec, NothingIsAllocatedForALengthThatIsOnlySaid) {
  Parcel parcel;
  wire::Value& value = *parcel.values().add_values();
  value.mutable_numbers()->set_type("f64");
  value.mutable_numbers()->set_data("1234567");
  Reader reader(parcel);
  EXPECT_THROW((void)Codec<std::vector<double>>::take(reader), UsageError);

  Parcel deep;
  wire::Value* inner = deep.values().add_values();
  for (int i = 0; i < 40; ++i) {
    inner = inner->mutable_list()->add_values();
  }
  Reader down(deep);
  EXPECT_THROW(
      {
        for (int i = 0; i < 40; ++i) {
          (void)down.begin_list();
        }
      },
      UsageError);

  Parcel beside;
  beside.values().add_values()->set_memory(7);
  Reader outside(beside);
  EXPECT_THROW((void)outside.memory(), UsageError);
}

TEST(Memory, RefusesABrokenNumberOfElements) {
  const Memory memory = Memory::own(std::vector<std::byte>(7));
  EXPECT_EQ(memory.as<std::byte>().size(), 7U);
  EXPECT_THROW((void)memory.as<float>(), UsageError);
}

}  // namespace
}  // namespace argosy::rpc
