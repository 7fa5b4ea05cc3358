#include "argosy/os/socket.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::os {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// errno of binding 127.0.0.1:port without SO_REUSEADDR; 0 when it went through.
int plain_bind(uint16_t port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

TEST(HeldPort, IsRefusedToOthersAndOpenToAServer) {
  const Result<HeldPort> held = HeldPort::hold();
  ASSERT_TRUE(held.ok());
  ASSERT_NE(held->number(), 0);
  EXPECT_EQ(plain_bind(held->number()), EADDRINUSE);
  const Result<Listener> server = Listener::listen_tcp("127.0.0.1", held->number());
  ASSERT_TRUE(server.ok()) << server.failure().what;
  EXPECT_TRUE(connect_tcp("127.0.0.1", held->number(), Deadline::after(5s)).ok());
}

TEST(HeldPort, BelongsToOneHolder) {
  const HeldPort held = *HeldPort::hold();
  const Result<HeldPort> second = HeldPort::hold(held.number());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.failure().error_number, EADDRINUSE);
  EXPECT_THAT(second.failure().what, HasSubstr(std::to_string(held.number())));
  std::vector<HeldPort> many;
  std::set<uint16_t> numbers;
  for (int i = 0; i < 200; ++i) {
    many.push_back(*HeldPort::hold());
    numbers.insert(many.back().number());
  }
  EXPECT_EQ(numbers.size(), 200U);
}

TEST(HeldPort, FadingConnectionsDoNotTakeAPort) {
  uint16_t number = 0;
  {
    const Listener server = *Listener::listen_tcp("0.0.0.0", 0);
    number = server.port();
    const UniqueFd client = *connect_tcp("127.0.0.1", number, Deadline::after(5s));
    UniqueFd accepted = *server.accept(Deadline::after(5s));
    accepted.close();  // who closes first keeps the port in TIME_WAIT
    std::array<char, 1> end{};
    EXPECT_EQ(*read_all(client.get(), std::as_writable_bytes(std::span(end))), 0U);
  }
  ASSERT_EQ(plain_bind(number), EADDRINUSE);
  const Result<HeldPort> held = HeldPort::hold(number);
  ASSERT_TRUE(held.ok()) << held.failure().what;
  EXPECT_FALSE(HeldPort::hold(number).ok());
  EXPECT_TRUE(Listener::listen_tcp("127.0.0.1", number).ok());
}

TEST(HeldPort, AServersPortIsTaken) {
  const Listener server = *Listener::listen_tcp("127.0.0.1", 0);
  EXPECT_EQ(HeldPort::hold(server.port()).failure().error_number, EADDRINUSE);
}

TEST(HeldPort, IsFreeAgainAfterwards) {
  uint16_t number = 0;
  { number = HeldPort::hold()->number(); }
  EXPECT_EQ(plain_bind(number), 0);
}

TEST(Listener, ExchangesBytes) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const Listener listener = *Listener::listen_tcp(host, 0);
    const Deadline deadline = Deadline::after(10s);
    const UniqueFd client = *connect_tcp(host, listener.port(), deadline);
    const UniqueFd server = *listener.accept(deadline);
    ASSERT_TRUE(write_all(client.get(), "hello", deadline).ok());
    std::array<char, 5> got{};
    EXPECT_EQ(*read_all(server.get(), std::as_writable_bytes(std::span(got)), deadline), 5U);
    EXPECT_EQ(std::string(got.data(), 5), "hello");
  }
}

TEST(Listener, AcceptGivesUpAtItsDeadline) {
  const Listener listener = *Listener::listen_tcp("127.0.0.1", 0);
  EXPECT_EQ(listener.accept(Deadline::after(5ms)).failure().error_number, ETIMEDOUT);
}

TEST(Listener, TakenPortIsNamed) {
  const Listener listener = *Listener::listen_tcp("127.0.0.1", 0);
  const Result<Listener> second = Listener::listen_tcp("127.0.0.1", listener.port());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.failure().what,
              HasSubstr("listen on 127.0.0.1:" + std::to_string(listener.port())));
}

TEST(Connect, WaitsForAServerThatComesLater) {
  const HeldPort held = *HeldPort::hold();
  std::thread client(
      [&] { EXPECT_TRUE(connect_tcp("127.0.0.1", held.number(), Deadline::after(20s)).ok()); });
  // No synchronisation wanted: the client may come first or second, both must work.
  const Result<Listener> listener = Listener::listen_tcp("127.0.0.1", held.number());
  ASSERT_TRUE(listener.ok());
  EXPECT_TRUE(listener->accept(Deadline::after(20s)).ok());
  client.join();
}

TEST(Connect, SaysWhatWasTried) {
  const HeldPort held = *HeldPort::hold();
  const Result<UniqueFd> nobody = connect_tcp("127.0.0.1", held.number(), Deadline::after(20ms));
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.failure().error_number, ECONNREFUSED);
  EXPECT_THAT(nobody.failure().what, HasSubstr("tried for 0.0 s"));
  const Result<UniqueFd> nowhere = connect_tcp("no.such.host.invalid", 1, Deadline::after(20s));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.failure().what, HasSubstr("resolve no.such.host.invalid"));
}

}  // namespace
}  // namespace argosy::os
