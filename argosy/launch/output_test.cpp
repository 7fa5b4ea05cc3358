#include "argosy/launch/output.h"

#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "argosy/os/fd.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

const auto kGoOn = [] { return false; };

/// An output whose reader is the test.
struct Read {
  os::Pipe out = *os::make_pipe();
  os::Pipe err = *os::make_pipe();
  os::Pipe wake = *os::make_pipe();
};

TEST(Output, SharesOneSinkWhereBothLeadToOnePlace) {
  const Read read;
  EXPECT_TRUE(Output(read.out.write.get(), read.out.write.get()).shared());
  Output output(read.out.write.get(), read.err.write.get());
  EXPECT_FALSE(output.shared());
  output.say("words\n");
  output.flush();
  std::string text(6, ' ');
  ASSERT_TRUE(os::read_all(read.err.read.get(), std::as_writable_bytes(std::span(text))).ok());
  EXPECT_EQ(text, "words\n");
}

TEST(Output, WhatWasSaidBeforeAnExceptionIsSaid) {
  const Read read;
  try {
    Output output(read.out.write.get(), read.err.write.get());
    output.say("words\n");
    throw std::runtime_error("what comes then");
  } catch (const std::runtime_error&) {
    std::string text(6, ' ');
    EXPECT_EQ(::read(read.err.read.get(), text.data(), text.size()), 6);
    EXPECT_EQ(text, "words\n");
  }
}

TEST(Output, GivesUpAReaderThatTakesNothing) {
  const Read read;
  Output output(read.out.write.get(), read.err.write.get());
  output.out().write(std::string(1 << 20, 'x'));
  output.hand_over(20ms, read.wake.read.get(), kGoOn);
  EXPECT_TRUE(output.pending());
}

/// Takes what the pipe holds.
size_t take_part(const Read& read) {
  std::string part(size_t{64} << 10, ' ');
  const ssize_t got = ::read(read.out.read.get(), part.data(), part.size());
  return got > 0 ? static_cast<size_t>(got) : 0;
}

TEST(Output, WaitsForAReaderThatIsMerelySlow) {
  constexpr auto kPatience = 200ms;
  const Read read;
  Output output(read.out.write.get(), read.err.write.get());
  output.out().write(std::string(1 << 20, 'x'));
  size_t taken = 0;
  const auto start = std::chrono::steady_clock::now();
  // The reader works within the question, so that it is slow by the same clock as the writer.
  output.hand_over(kPatience, read.wake.read.get(), [&] {
    std::this_thread::sleep_for(kPatience / 3);
    taken += take_part(read);
    return false;
  });
  EXPECT_FALSE(output.pending());
  taken += take_part(read);
  EXPECT_EQ(taken, size_t{1} << 20);
  EXPECT_GT(std::chrono::steady_clock::now() - start, 3 * kPatience);  // or nothing is shown
}

TEST(Output, GivesUpAReaderThatTakesOnePartAndThenNothing) {
  const Read read;
  Output output(read.out.write.get(), read.err.write.get());
  output.out().write(std::string(1 << 20, 'x'));
  size_t taken = 0;
  int asked = 0;
  output.hand_over(20ms, read.wake.read.get(), [&] {
    taken += taken == 0 ? take_part(read) : 0;
    return ++asked == 50;  // never by itself
  });
  EXPECT_GT(taken, 0U);
  EXPECT_LT(asked, 50);
  EXPECT_TRUE(output.pending());
}

TEST(Output, StopsWhenItIsToldTo) {
  const Read read;
  Output output(read.out.write.get(), read.err.write.get());
  output.out().write(std::string(1 << 20, 'x'));
  ASSERT_TRUE(os::write_all(read.wake.write.get(), "x").ok());
  int asked = 0;
  output.hand_over(20s, read.wake.read.get(), [&] { return ++asked == 2; });
  EXPECT_TRUE(output.pending());
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace argosy::launch
