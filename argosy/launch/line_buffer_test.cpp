#include "argosy/launch/line_buffer.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Lines that come out when `text` comes in, in chunks of `chunk` bytes.
std::vector<std::string> cut(std::string_view text, size_t chunk) {
  std::vector<std::string> lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  LineBuffer buffer;
  for (size_t at = 0; at < text.size(); at += chunk) {
    buffer.add(text.substr(at, chunk), sink);
  }
  buffer.finish(sink);
  return lines;
}

TEST(LineBuffer, GivesTheSameLinesHoweverTheBytesArrive) {
  const std::string text("one\n\ntwo \0 \xff\r\nlast", 18);
  for (size_t chunk = 1; chunk <= text.size(); ++chunk) {
    EXPECT_THAT(cut(text, chunk), ElementsAre("one", "", std::string("two \0 \xff\r", 8), "last"))
        << chunk;
  }
}

TEST(LineBuffer, HoldsAnUnfinishedLine) {
  LineBuffer buffer;
  std::vector<std::string> lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  buffer.add("half", sink);
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_EQ(buffer.unfinished(), "half");
  buffer.add(" done\n", sink);
  EXPECT_THAT(lines, ElementsAre("half done"));
  buffer.finish(sink);
  EXPECT_EQ(lines.size(), 1U);
}

TEST(LineBuffer, CutsALineThatNeverEnds) {
  const std::string endless(LineBuffer::kLongest * 2 + 5, 'x');
  for (const size_t chunk : {size_t{1000}, LineBuffer::kLongest, endless.size()}) {
    const std::vector<std::string> lines = cut(endless + "\n", chunk);
    ASSERT_EQ(lines.size(), 3U) << chunk;
    EXPECT_EQ(lines[0].size(), LineBuffer::kLongest);
    EXPECT_EQ(lines[2], "xxxxx");
  }
  // One that fits exactly stays whole.
  const std::string exact(LineBuffer::kLongest - 1, 'y');
  EXPECT_THAT(cut(exact + "\nz\n", 4096), ElementsAre(exact, "z"));
}

TEST(LineBuffer, AProgressBarDoesNotGrow) {
  LineBuffer buffer;
  std::vector<std::string> lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  for (int i = 0; i < 100'000; ++i) {
    buffer.add("\rstep " + std::to_string(i), sink);
    buffer.drop_redrawn();
  }
  EXPECT_EQ(buffer.unfinished(), "step 99999");
  buffer.add("\r", sink);
  buffer.drop_redrawn();
  EXPECT_EQ(buffer.unfinished(), "step 99999\r");
  buffer.add("\n", sink);
  EXPECT_THAT(lines, ElementsAre("step 99999\r"));
}

TEST(Tail, KeepsTheLastLinesInOrder) {
  Tail tail;
  EXPECT_THAT(tail.lines(), IsEmpty());
  tail.add("only");
  EXPECT_THAT(tail.lines(), ElementsAre("only"));
  for (int i = 0; i < 50; ++i) {
    tail.add(std::to_string(i));
  }
  const std::vector<std::string> lines = tail.lines();
  ASSERT_EQ(lines.size(), Tail::kLines);
  EXPECT_EQ(lines.front(), "30");
  EXPECT_EQ(lines.back(), "49");
}

TEST(Tail, KeepsTheEndOfALineAsATerminalShowsIt) {
  Tail tail;
  tail.add(std::string(1 << 20, 'x') + "END");
  EXPECT_EQ(tail.lines().back(), "…" + std::string(Tail::kLongest - 3, 'x') + "END");
  tail.add("ä" + std::string(Tail::kLongest - 1, 'x'));  // its second byte would be the first kept
  EXPECT_EQ(tail.lines().back(), "…" + std::string(Tail::kLongest - 1, 'x'));
  tail.add("step 1\rstep 2\rfatal");
  EXPECT_EQ(tail.lines().back(), "fatal");
}

TEST(Tail, ForgetsNoLineThatItWouldKeep) {
  std::string bytes;
  for (size_t i = 0; i < Tail::kLines; ++i) {
    bytes += "kept\n";
  }
  EXPECT_EQ(Tail::forgotten(""), "");
  EXPECT_EQ(Tail::forgotten(bytes), "");
  EXPECT_EQ(Tail::forgotten(bytes + "not ended"), "");
  EXPECT_EQ(Tail::forgotten("end of an earlier read\n" + bytes), "end of an earlier read");
  EXPECT_EQ(Tail::forgotten("a\n\nb\n" + bytes + "not ended"), "a\n\nb");
}

TEST(Redraw, ShowsWhatATerminalWould) {
  EXPECT_EQ(after_last_redraw("10%\r20%\r30%"), "30%");
  EXPECT_EQ(after_last_redraw("10%\r20%\r"), "20%");
  EXPECT_EQ(after_last_redraw("plain\r"), "plain");
  EXPECT_EQ(after_last_redraw("plain"), "plain");
  EXPECT_EQ(after_last_redraw("\r"), "");
}

}  // namespace
}  // namespace argosy::launch
