#include "argosy/rpc/shared_line.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/unix_socket.h"
#include "argosy/rpc/landing.h"

namespace argosy::rpc {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr size_t kMost = size_t{256} << 20;

struct Ends {
  std::shared_ptr<SharedLine> writer;
  std::shared_ptr<SharedLine> reader;
};

Ends make_line(size_t most = kMost) {
  std::array<int, 2> pair{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair.data()), 0);
  return {std::make_shared<SharedLine>(os::UniqueFd(pair[0]), most),
          std::make_shared<SharedLine>(os::UniqueFd(pair[1]), most)};
}

Draft draft_of(SharedLine& line, size_t bytes) {
  return line.allocate(bytes, Deadline::after(60s)).value();
}

TEST(SharedLine, TheOtherSideReadsWhatWasWrittenAndFreesIt) {
  const Ends ends = make_line();
  const std::byte* first = nullptr;
  for (int round = 0; round < 3; ++round) {
    Draft draft = draft_of(*ends.writer, 100);
    std::memset(draft.bytes().data(), round + 1, 100);
    first = first == nullptr ? draft.bytes().data() : first;
    EXPECT_EQ(draft.bytes().data(), first) << "the block was not used again";
    const auto block = ends.writer->offer(std::move(draft).finish());
    ASSERT_NE(block, nullptr);
    const Memory read = ends.reader->claim(block->place(), 100);
    EXPECT_EQ(read.bytes()[99], std::byte(round + 1));
  }
}

TEST(SharedLine, ABlockIsNotUsedAgainWhileItIsRead) {
  const Ends ends = make_line();
  Draft draft = draft_of(*ends.writer, 64);
  const std::byte* const first = draft.bytes().data();
  const auto block = ends.writer->offer(std::move(draft).finish());
  std::optional<Memory> read = ends.reader->claim(block->place(), 64);
  EXPECT_NE(draft_of(*ends.writer, 64).bytes().data(), first);
  const Memory copy = *read;
  read.reset();
  EXPECT_NE(draft_of(*ends.writer, 64).bytes().data(), first);
}

TEST(SharedLine, WhatIsTakenBackCannotBeClaimed) {
  const Ends ends = make_line();
  const auto block = ends.writer->offer(draft_of(*ends.writer, 64).finish());
  block->withdraw();
  EXPECT_THROW((void)ends.reader->claim(block->place(), 64), RendezvousError);
}

TEST(SharedLine, WhatIsClaimedCannotBeTakenBack) {
  const Ends ends = make_line();
  const auto block = ends.writer->offer(draft_of(*ends.writer, 64).finish());
  const Memory read = ends.reader->claim(block->place(), 64);
  block->withdraw();
  EXPECT_FALSE(block->is_free());
}

TEST(SharedLine, WhoComesLateDoesNotTouchTheNextBlockOfThatPlace) {
  const Ends ends = make_line();
  const auto first = ends.writer->offer(draft_of(*ends.writer, 64).finish());
  (void)ends.reader->claim(first->place(), 64);  // read, and freed
  const auto second = ends.writer->offer(draft_of(*ends.writer, 64).finish());
  ASSERT_EQ(second->place().offset, first->place().offset);
  first->withdraw();
  EXPECT_THROW((void)ends.reader->claim(first->place(), 64), RendezvousError);
  EXPECT_EQ(ends.reader->claim(second->place(), 64).size(), 64U);
}

TEST(SharedLine, AnOfferThatNobodyTookExpires) {
  const Ends ends = make_line();
  const auto block =
      ends.writer->offer(ends.writer->allocate(64, Deadline::after(0s)).value().finish());
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(block->is_free());
}

TEST(SharedLine, AMemoryIsOfferedOnce) {
  const Ends ends = make_line();
  const Memory memory = draft_of(*ends.writer, 64).finish();
  EXPECT_NE(ends.writer->offer(memory), nullptr);
  EXPECT_EQ(ends.writer->offer(memory), nullptr);
  EXPECT_EQ(ends.reader->offer(memory), nullptr) << "it is no block of that side";
}

TEST(SharedLine, NoSizeIsTooLargeToBeRefused) {
  const Ends ends = make_line();
  EXPECT_FALSE(ends.writer->allocate(SIZE_MAX, Deadline::after(60s)).has_value());
  EXPECT_FALSE(ends.writer->allocate(SIZE_MAX - 70, Deadline::after(60s)).has_value());
}

TEST(SharedLine, MoreThanMayBeSharedIsNot) {
  const Ends ends = make_line(size_t{100} << 20);
  EXPECT_TRUE(ends.writer->allocate(size_t{30} << 20, Deadline::after(60s)));
  const auto kept = ends.writer->allocate(size_t{60} << 20, Deadline::after(60s));
  EXPECT_FALSE(ends.writer->allocate(size_t{120} << 20, Deadline::after(60s)));
}

TEST(SharedLine, PlacesOutsideAreRefused) {
  const Ends ends = make_line();
  const auto block = ends.writer->offer(draft_of(*ends.writer, 64).finish());
  EXPECT_THROW((void)ends.reader->claim({0, 0, 1}, 1), RendezvousError);
  EXPECT_THROW((void)ends.reader->claim({0, 65, 1}, 1), RendezvousError);
  EXPECT_THROW((void)ends.reader->claim({0, uint64_t{1} << 63, 1}, 64), RendezvousError);
  EXPECT_THROW((void)ends.reader->claim({0, 64, 1}, size_t{64} << 20), RendezvousError);
  EXPECT_THROW((void)ends.reader->claim({9999999, 64, 1}, 64), RendezvousError);
}

TEST(Landing, ALineIsFoundByItsName) {
  Landing landing(kMost);
  const auto mine =
      connect_line(landing.socket(), landing.secret(), "one", kMost).or_throw<Error>("test");
  const std::shared_ptr<SharedLine> theirs = landing.line("one");
  EXPECT_EQ(landing.line("one"), theirs);
  const auto block = mine->offer(draft_of(*mine, 64).finish());
  EXPECT_EQ(theirs->claim(block->place(), 64).size(), 64U);
}

TEST(Landing, NothingIsToldToAListenerOfAnotherUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "another user is root's to be";
  }
  constexpr uid_t kNobody = 65534;
  const std::string name = "argosy/rpc/squatted/" + std::to_string(::getpid());
  ASSERT_EQ(::seteuid(kNobody), 0);
  const auto squatter = os::MessageListener::listen(name).or_throw<Error>("test");
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(connect_line(name, "secret", "id", kMost).failure().what,
              HasSubstr("another user listens"));
  EXPECT_FALSE(connect_lane(name, "secret", "id").ok());
}

/// Whoever comes to a listener waits there until it is let in, also when it has gone.
TEST(Landing, AFullQueueLetsNobodyWaitForEver) {
  const Landing landing(kMost);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  landing.socket().copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + landing.socket().size());
  for (int i = 0; i < 100'000; ++i) {
    const os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      ASSERT_EQ(errno, EAGAIN);
      break;
    }
  }
  std::promise<bool> connected;
  std::thread([&connected, name = landing.socket(), secret = landing.secret()] {
    connected.set_value(connect_line(name, secret, "one", kMost).ok());
  }).detach();
  std::future<bool> result = connected.get_future();
  ASSERT_EQ(result.wait_for(20s), std::future_status::ready);
  EXPECT_FALSE(result.get());
}

TEST(Landing, WhoDoesNotKnowTheSecretHasNoLine) {
  Landing landing(kMost);
  const auto stranger =
      connect_line(landing.socket(), "guessed", "one", kMost).or_throw<Error>("test");
  EXPECT_THROW((void)landing.line("one"), RendezvousError);
}

}  // namespace
}  // namespace argosy::rpc
