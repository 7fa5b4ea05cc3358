#include "argosy/base/text.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace argosy::text {
namespace {

/// What of libtorch's tensors is used.
enum class FakeType { kFloat };
std::string toString(FakeType /*type*/) {
  return "Float";
}  // NOLINT: libtorch's name
struct FakeTensor {
  std::vector<int64_t> shape{};
  [[nodiscard]] bool defined() const { return !shape.empty(); }
  [[nodiscard]] const std::vector<int64_t>& sizes() const { return shape; }
  [[nodiscard]] FakeType scalar_type() const { return FakeType::kFloat; }
};

TEST(Text, BytesAndMemory) {
  EXPECT_EQ(bytes(int64_t{0}), "0 B");
  EXPECT_EQ(bytes(int64_t{999}), "999 B");
  EXPECT_EQ(bytes(int64_t{1500}), "1.5 kB");
  EXPECT_EQ(bytes(243e6), "243 MB");
  EXPECT_EQ(bytes(9.2e18), "9200000 TB");
  EXPECT_EQ(memory(512 << 20), "512 MiB");
  EXPECT_EQ(memory(int64_t{25} << 30), "25.0 GiB");
}

TEST(Text, CountsAndShapes) {
  EXPECT_EQ(count(0), "0");
  EXPECT_EQ(count(-1234567), "-1,234,567");
  EXPECT_EQ(count(-123), "-123");
  EXPECT_EQ(count(std::numeric_limits<int64_t>::max()), "9,223,372,036,854,775,807");
  EXPECT_EQ(shape(std::vector<int64_t>{64, 3}), "[64, 3]");
  EXPECT_EQ(shape(std::vector<int64_t>{}), "[]");
  EXPECT_EQ(shape(FakeTensor{{2, 3}}), "[2, 3]");
  EXPECT_EQ(shape(FakeTensor{}), "an undefined tensor");
  EXPECT_EQ(shape_and_type(FakeTensor{{2, 3}}), "[2, 3] Float");
  EXPECT_EQ(shape_and_type(FakeTensor{}), "nothing");
}

TEST(Text, Durations) {
  EXPECT_EQ(duration(-1), "0.0 s");
  EXPECT_EQ(duration(4.25), "4.2 s");
  EXPECT_EQ(duration(59.4), "59 s");
  EXPECT_EQ(duration(59.6), "1 min 00 s");
  EXPECT_EQ(duration(842), "14 min 02 s");
  EXPECT_EQ(duration(11100), "3 h 05 min");
}

TEST(Text, WhatATerminalMayShow) {
  EXPECT_EQ(printable("a\x1b[31mb\nü\x7f"), "a?[31mb?ü?");
}

TEST(Text, Times) {
  const auto at =
      std::chrono::system_clock::from_time_t(1772366400) + std::chrono::milliseconds(250);
  EXPECT_EQ(utc(at), "2026-03-01T12:00:00.250Z");
  EXPECT_EQ(stamp(at).size(), 15U);
}

TEST(Text, ATableAlignsNumbersRightAndWordsLeft) {
  EXPECT_EQ(table({"epoch", "name"}, {{"1", "a"}, {"10", "longer"}}),
            "epoch  name\n"
            "    1  a\n"
            "   10  longer\n");
}

}  // namespace
}  // namespace argosy::text
