#include "argosy/rpc/lane.h"

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::rpc {
namespace {

using namespace std::chrono_literals;
using Kind = Lane::Kind;

// -- Ring: both ends in one process, over the same memory.

class Rings : public ::testing::Test {
 protected:
  std::unique_ptr<Ring::Control> control_ = std::make_unique<Ring::Control>();
  std::vector<std::byte> data_ = std::vector<std::byte>(Ring::kBytes);
  Ring writer_{*control_, data_};
  Ring reader_{*control_, data_};

  bool put(uint64_t call, const std::string& text) {
    return writer_.put(7, call, std::as_bytes(std::span(text)));
  }
};

TEST_F(Rings, FramesComeOutAsTheyWentInRoundAndRound) {
  uint64_t next = 0;
  for (uint64_t call = 0; call < 200; ++call) {
    const std::string text(call * 163 % (Ring::kMostInFrame + 1),
                           static_cast<char>('a' + call % 26));
    while (!put(call, text)) {
      const std::optional<Ring::Frame> frame = reader_.take();
      ASSERT_TRUE(frame);
      EXPECT_EQ(frame->call, next);
      EXPECT_EQ(frame->bytes.size(), next * 163 % (Ring::kMostInFrame + 1));
      EXPECT_EQ(frame->bytes, std::string(frame->bytes.size(), static_cast<char>('a' + next % 26)));
      ++next;
    }
  }
  EXPECT_GT(next, 100U) << "it never was full";
}

TEST_F(Rings, SayWhatHasBeenRead) {
  EXPECT_TRUE(reader_.is_empty());
  ASSERT_TRUE(put(1, "one"));
  const uint64_t end = writer_.position();
  EXPECT_FALSE(reader_.is_empty());
  EXPECT_LT(writer_.read_so_far(), end);
  EXPECT_TRUE(reader_.take());
  EXPECT_EQ(writer_.read_so_far(), end);
  EXPECT_FALSE(reader_.take());
}

TEST_F(Rings, NothingIsBelievedThatCannotBe) {
  ASSERT_TRUE(put(1, "one"));
  const uint64_t end = control_->written;
  for (const uint64_t wrong : {end + Ring::kBytes + 1, uint64_t{1}, UINT64_MAX}) {
    control_->written = wrong;
    EXPECT_THROW((void)reader_.take(), RendezvousError) << wrong;
  }
  control_->written = end;
  const uint32_t size = 1000;  // of a frame of 32 bytes
  std::memcpy(data_.data(), &size, sizeof size);
  EXPECT_THROW((void)reader_.take(), RendezvousError);
  const uint32_t huge = UINT32_MAX;
  std::memcpy(data_.data(), &huge, sizeof huge);
  EXPECT_THROW((void)reader_.take(), RendezvousError);
  for (const uint64_t wrong : {end + 1, end - Ring::kBytes - 1}) {
    control_->read = wrong;
    EXPECT_THROW((void)put(2, "two"), RendezvousError) << wrong;
  }
}

// -- Lane

struct Pair {
  std::unique_ptr<Lane> caller;
  std::unique_ptr<Lane> server;
};

Pair make_lane() {
  std::array<int, 2> sockets{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()), 0);
  os::SharedMemory memory = *Lane::make_memory();
  os::SharedMemory same = *os::SharedMemory::open(*os::duplicate(memory.fd()));
  Pair pair{std::make_unique<Lane>(os::UniqueFd(sockets[0]), std::move(memory), Lane::End::kCaller),
            std::make_unique<Lane>(os::UniqueFd(sockets[1]), std::move(same), Lane::End::kServer)};
  pair.server->open();
  return pair;
}

bool send(Lane& lane, uint64_t call, const std::string& text) {
  return lane.send(Kind::kRaw, call, text, {}, Deadline::after(10s)).is_whole();
}

/// Answers each frame with the same one, as a server's threads read.
void echo(Lane& lane) {
  while (lane.sleep()) {
    std::optional<Lane::Reading> reading = lane.try_read();
    while (const auto frame = reading ? reading->next() : std::nullopt) {
      EXPECT_TRUE(send(lane, frame->call, frame->bytes));
    }
  }
  lane.close();
}

TEST(Lane, ASleepingReaderIsWokenEachTime) {
  Pair pair = make_lane();
  std::thread server([&] { echo(*pair.server); });
  for (uint64_t i = 0; i < 400; ++i) {
    if (i % 40 == 0) {
      std::this_thread::sleep_for(2ms);  // longer than it looks
    }
    ASSERT_TRUE(send(*pair.caller, i, std::to_string(i)));
    std::optional<Lane::Reading> reading = pair.caller->try_read();
    ASSERT_TRUE(reading);
    const auto frame = reading->await([] { return false; }, Deadline::after(10s));
    ASSERT_TRUE(frame) << i;
    EXPECT_EQ(frame->bytes, std::to_string(i));
    ASSERT_TRUE(reading->leave());
  }
  pair.caller->close();
  server.join();
}

TEST(Lane, AReaderThatIsAwayIsRungWhileOthersWriteAtAnyMoment) {
  Pair pair = make_lane();
  constexpr int kEach = 20'000;
  std::atomic<int> got = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (pair.server->sleep()) {
        std::optional<Lane::Reading> reading = pair.server->try_read();
        // It leaves as soon as it may: the next frame may come at that very moment.
        while (reading && reading->next(0us)) {
          ++got;
        }
      }
      pair.server->close();
    });
  }
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) {
        ASSERT_TRUE(send(*pair.caller, 1, "x"));
      }
    });
  }
  for (std::thread& thread : writers) {
    thread.join();
  }
  const Deadline deadline = Deadline::after(20s);
  while (got < 2 * kEach && !deadline.expired()) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(got, 2 * kEach);
  pair.caller->close();
  for (std::thread& thread : readers) {
    thread.join();
  }
}

TEST(Lane, OneThreadReadsAtATime) {
  Pair pair = make_lane();
  std::optional<Lane::Reading> reading = pair.server->try_read();
  ASSERT_TRUE(reading);
  std::async(std::launch::async, [&] { EXPECT_FALSE(pair.server->try_read()); }).get();
  ASSERT_TRUE(send(*pair.caller, 1, "one"));
  EXPECT_FALSE(reading->leave()) << "there is a frame";
  EXPECT_TRUE(reading->next());
  EXPECT_TRUE(reading->leave());
  EXPECT_TRUE(pair.server->try_read());
}

TEST(Lane, ANudgeAndADeadlineEndAWait) {
  Pair pair = make_lane();
  std::atomic<bool> done = false;
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    done = true;
    pair.caller->nudge();
  });
  const auto start = Deadline::Clock::now();
  std::optional<Lane::Reading> reading = pair.caller->try_read();
  EXPECT_FALSE(reading->await([&] { return done.load(); }, Deadline::after(60s)));
  EXPECT_LT(Deadline::Clock::now() - start, 900ms) << "it was not nudged, but looked by itself";
  other.join();
  reading = pair.caller->try_read();
  EXPECT_FALSE(reading->await([] { return false; }, Deadline::after(20ms)));
}

TEST(Lane, WhoeverClosesSaysGoodbyeAndReadsNothingMore) {
  Pair pair = make_lane();
  EXPECT_TRUE(pair.caller->is_open());
  EXPECT_FALSE(pair.caller->said_goodbye());
  std::future<bool> asleep = std::async(std::launch::async, [&] { return pair.caller->sleep(); });
  pair.server->close();
  EXPECT_FALSE(asleep.get());
  EXPECT_TRUE(pair.caller->said_goodbye());
  EXPECT_FALSE(pair.caller->is_open());
  EXPECT_FALSE(pair.server->try_read());
  const Lane::Sent late = pair.caller->send(Kind::kRaw, 1, "late", {}, Deadline::after(1s));
  EXPECT_TRUE(!late.is_whole() || !pair.caller->has_read(*late.end));
}

TEST(Lane, AWorkerThatDiesClosesItsSocket) {
  Pair pair = make_lane();
  EXPECT_FALSE(pair.caller->is_abandoned());
  std::future<bool> asleep = std::async(std::launch::async, [&] { return pair.caller->sleep(); });
  pair.server->give_up();  // does not say goodbye
  EXPECT_FALSE(pair.server->sleep());
  EXPECT_TRUE(pair.server->is_closed_here());
  pair.server.reset();
  EXPECT_FALSE(asleep.get());
  EXPECT_TRUE(pair.caller->is_abandoned());
}

TEST(Lane, AFullRingHoldsTheWriterUntilItsDeadline) {
  Pair pair = make_lane();
  const std::vector<std::byte> bytes(3 * Ring::kBytes);
  const std::vector<Memory> apart{Memory::view(bytes)};
  const Lane::Sent half = pair.caller->send(Kind::kRequest, 1, "", apart, Deadline::after(20ms));
  EXPECT_TRUE(half.begun);
  EXPECT_FALSE(half.is_whole());
  const std::string frame(Ring::kMostInFrame, 'x');
  while (pair.caller->send(Kind::kRequest, 2, frame, {}, Deadline::after(0ms)).is_whole()) {
  }
  EXPECT_FALSE(pair.caller->send(Kind::kRequest, 3, frame, {}, Deadline::after(0ms)).begun);
}

TEST(Lane, NobodyWaitsForRoomBehindAReaderThatIsGone) {
  Pair pair = make_lane();
  const std::vector<std::byte> bytes(3 * Ring::kBytes);
  std::thread death([&] {
    std::this_thread::sleep_for(100ms);
    pair.server.reset();
  });
  const std::vector<Memory> apart{Memory::view(bytes)};
  const auto begin = Deadline::Clock::now();
  EXPECT_FALSE(pair.caller->send(Kind::kRequest, 1, "", apart, Deadline::after(60s)).is_whole());
  EXPECT_LT(Deadline::Clock::now() - begin, 30s);
  death.join();
}

// -- Arriving

Ring::Frame frame_of(Kind kind, const std::string& bytes) {
  return {.kind = static_cast<uint32_t>(kind), .call = 1, .bytes = bytes};
}

TEST(Arriving, PutsTogetherWhatCameInParts) {
  wire::Request request;
  request.set_function("a long name");
  request.add_memories()->set_bytes(6);
  const std::string text = request.SerializeAsString();
  Arriving<wire::Request> arriving(nullptr, 1000);
  EXPECT_FALSE(arriving.take(frame_of(Kind::kPart, text.substr(0, 5))));
  EXPECT_FALSE(arriving.take(frame_of(Kind::kRequest, text.substr(5))));
  EXPECT_FALSE(arriving.take(frame_of(Kind::kRaw, "abc")));
  EXPECT_TRUE(arriving.take(frame_of(Kind::kRaw, "def")));
  EXPECT_EQ(arriving.message().function(), "a long name");
  const std::vector<Memory> memories = std::move(arriving).memories();
  EXPECT_EQ(std::memcmp(memories[0].bytes().data(), "abcdef", 6), 0);
}

TEST(Arriving, RefusesWhatComesOutOfTurnOrIsTooMuch) {
  const auto takes = [](const std::vector<Ring::Frame>& frames) {
    Arriving<wire::Request> arriving(nullptr, 20);
    for (const Ring::Frame& frame : frames) {
      (void)arriving.take(frame);
    }
  };
  wire::Request request;
  request.add_memories()->set_bytes(6);
  const std::string text = request.SerializeAsString();
  EXPECT_THROW(takes({frame_of(Kind::kRaw, "abc")}), RendezvousError);
  EXPECT_THROW(takes({frame_of(Kind::kRequest, "\xff\xff")}), RendezvousError);
  EXPECT_THROW(takes({frame_of(Kind::kRequest, text), frame_of(Kind::kRequest, text)}),
               RendezvousError);
  EXPECT_THROW(takes({frame_of(Kind::kRequest, text), frame_of(Kind::kRaw, "sevenby")}),
               RendezvousError);
  EXPECT_THROW(takes({frame_of(Kind::kPart, "0123456789"), frame_of(Kind::kPart, "0123456789x")}),
               RendezvousError);
  request.mutable_memories(0)->set_bytes(21);
  EXPECT_THROW(takes({frame_of(Kind::kRequest, request.SerializeAsString())}), RendezvousError);
}

}  // namespace
}  // namespace argosy::rpc
