#include "argosy/launch/output.h"

#include <chrono>
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

TEST(Output, GivesUpAReaderThatTakesNothing) {
  const Read read;
  Output output(read.out.write.get(), read.err.write.get());
  output.out().write(std::string(1 << 20, 'x'));
  output.hand_over(20ms, read.wake.read.get(), kGoOn);
  EXPECT_TRUE(output.pending());
}

TEST(Output, WaitsForAReaderThatIsMerelySlow) {
  Read read;
  Output output(read.out.write.get(), read.err.write.get());
  output.out().write(std::string(1 << 20, 'x'));
  // Wakes the writer once for each part, which it takes only when there is room.
  std::thread reader([&] {
    std::string text((1 << 20), ' ');
    EXPECT_TRUE(os::read_all(read.out.read.get(), std::as_writable_bytes(std::span(text))).ok());
  });
  output.hand_over(20s, read.wake.read.get(), kGoOn);
  EXPECT_FALSE(output.pending());
  reader.join();
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
