#include "argosy/launch/nodes/control_plane.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/launch/nodes/meeting.h"
#include "argosy/os/socket.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/rendezvous/store_client.h"

#include "tests/support/error_text.h"
#include "tests/support/owned_port.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Kind = JobEvent::Kind;

std::vector<JobEvent> wait_for_events(ControlPlane& plane, size_t count) {
  std::vector<JobEvent> all;
  const Deadline deadline = Deadline::after(20s);
  while (all.size() < count && !deadline.expired()) {
    pollfd waiting{plane.fd(), POLLIN, 0};
    (void)::poll(&waiting, 1, 1000);
    for (JobEvent& event : plane.events()) {
      all.push_back(std::move(event));
    }
  }
  return all;
}

TEST(Journal, ManyWritersAllReadTheSameOrder) {
  constexpr int kWriters = 4;
  constexpr int kEach = 50;
  const auto store = rendezvous::in_process_store();
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      Journal journal(store, "j");
      for (int i = 0; i < kEach; ++i) {
        journal.append(std::to_string(w) + ":" + std::to_string(i), Deadline::after(20s));
      }
    });
  }
  Journal one(store, "j");
  Journal two(store, "j");
  std::vector<int> next(kWriters, 0);
  for (int i = 0; i < kWriters * kEach; ++i) {
    const std::string text = one.next(Deadline::after(20s)).value();
    EXPECT_EQ(two.next(Deadline::after(20s)), text);
    const auto writer = static_cast<size_t>(text.front() - '0');
    EXPECT_EQ(text, std::to_string(writer) + ":" + std::to_string(next[writer]++));
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(one.next(Deadline::after(1ms)), std::nullopt);
}

TEST(ControlPlane, TellsEveryLauncherInOneOrder) {
  const auto store = rendezvous::in_process_store();
  ControlPlane zero(store, 0, {0, 1}, {});
  ControlPlane one(store, 1, {0, 1}, {});
  one.tell({.kind = Kind::kFailed, .node = 1});
  zero.tell({.kind = Kind::kEnded, .node = 0});
  const std::vector<JobEvent> seen = wait_for_events(zero, 2);
  const std::vector<JobEvent> seen_there = wait_for_events(one, 2);
  ASSERT_EQ(seen.size(), 2U);
  ASSERT_EQ(seen_there.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(seen[i].to_json(), seen_there[i].to_json());
  }
}

TEST(ControlPlane, WhoNeverGivesASignOfLifeIsLostAndWhoDoesIsNot) {
  const auto store = rendezvous::in_process_store();
  const KeepAlive keep_alive{.interval = 20ms, .max_attempt = 10};
  ControlPlane zero(store, 0, {0, 1, 2}, keep_alive);
  ControlPlane two(store, 2, {0, 1, 2}, keep_alive);
  const std::vector<JobEvent> lost = wait_for_events(zero, 1);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].kind, Kind::kLost);
  EXPECT_EQ(lost[0].node, 1);
  zero.tell({.kind = Kind::kEnded, .node = 0});  // the only other thing that is told
  EXPECT_EQ(wait_for_events(two, 2).at(1).kind, Kind::kEnded);
}

/// Three nodes that meet over real gRPC on the loopback, in threads.
TEST(Meeting, AllNodesAgreeOnOnePlan) {
  const test::OwnedPort port;
  const Meeting meeting{
      .nodes = 3, .host = "127.0.0.1", .port = port.port(), .token = "t", .timeout = 20s};
  std::vector<Met> met(3);
  std::vector<std::thread> nodes;
  for (int i = 0; i < 3; ++i) {
    nodes.emplace_back([&, i] {
      Meeting own = meeting;
      own.hosts = i == 2;
      NodeInfo self{.wanted_rank = own.hosts ? 0 : -1,
                    .host = "h" + std::to_string(i),
                    .address = "127.0.0.1",
                    .nodes = 3,
                    .endpoint_ports = {static_cast<uint16_t>(4000 + i)},
                    .run_id = "run-" + std::to_string(i)};
      met[static_cast<size_t>(i)] = meet(own, self, [](const std::string&) {});
    });
  }
  for (std::thread& node : nodes) {
    node.join();
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(met[i].plan.run_id, "run-2");
    EXPECT_EQ(met[i].plan.nodes[static_cast<size_t>(met[i].node)].host, "h" + std::to_string(i));
    EXPECT_EQ(met[i].plan.world_size(), 3);
  }
  EXPECT_EQ(met[2].node, 0);
}

/// Two launchers on the host that the meeting's address names, of which none has a number.
TEST(Meeting, TheSecondLauncherOfTheMeetingsHostJoinsTheFirst) {
  const test::OwnedPort port;
  const Meeting meeting{.nodes = 2,
                        .host = "127.0.0.1",
                        .port = port.port(),
                        .hosts = true,
                        .may_join = true,
                        .token = "t",
                        .timeout = 20s};
  std::vector<std::future<Met>> nodes;
  for (uint16_t i = 0; i < 2; ++i) {
    nodes.push_back(std::async(std::launch::async, [&, i] {
      return meet(meeting,
                  {.wanted_rank = 0,
                   .host = "h",
                   .address = "127.0.0.1",
                   .nodes = 2,
                   .endpoint_ports = {static_cast<uint16_t>(4000 + i)}},
                  [](const std::string&) {});
    }));
  }
  const Met one = nodes[0].get(), other = nodes[1].get();
  EXPECT_EQ(one.node + other.node, 1);
  EXPECT_EQ(one.server == nullptr, one.node == 1);
  EXPECT_EQ(other.server == nullptr, other.node == 1);
}

TEST(Meeting, AnotherProgramAtThePortIsTold) {
  const os::Listener stranger = *os::Listener::listen_tcp("127.0.0.1", 0);
  const Meeting meeting{.nodes = 2,
                        .host = "127.0.0.1",
                        .port = stranger.port(),
                        .hosts = true,
                        .may_join = true,
                        .timeout = 20s};
  EXPECT_THAT(test::error_text<RendezvousError>([&] {
                (void)meet(meeting,
                           {.wanted_rank = 0, .address = "127.0.0.1", .nodes = 2},
                           [](const std::string&) {});
              }),
              testing::HasSubstr("cannot listen on 127.0.0.1"));
}

// Without a token whoever reaches the port can be a member of any name.
TEST(Meeting, ANumberThatNobodyWasGivenIsNoNode) {
  const test::OwnedPort port;
  const Meeting zero{
      .nodes = 2, .host = "127.0.0.1", .port = port.port(), .hosts = true, .timeout = 20s};
  const auto come = [](const Meeting& meeting, int rank) {
    return meet(meeting,
                {.wanted_rank = rank,
                 .host = "h",
                 .address = "127.0.0.1",
                 .nodes = 2,
                 .endpoint_ports = {static_cast<uint16_t>(4000 + rank)}},
                [](const std::string&) {});
  };
  auto met = std::async(std::launch::async, [&] { return come(zero, 0); });
  const auto store = rendezvous::connect_store("127.0.0.1", port.port(), "", Deadline::after(20s));
  std::vector<std::unique_ptr<rendezvous::Presence>> strangers;
  for (const char* number : {"4000000000", "9000000000000000000", "-1", "4294967296", "x"}) {
    store->set(fmt::format("nodes/info/{}", number), NodeInfo{}.to_json(), Deadline::after(20s));
    strangers.push_back(store->announce(fmt::format("node/{}", number), Deadline::after(20s)));
  }
  Meeting one = zero;
  one.hosts = false;
  const Met there = come(one, 1);  // node 0 has looked at the strangers, who are still there
  const Met here = met.get();
  EXPECT_EQ(here.plan.nodes.size(), 2U);
  EXPECT_EQ(there.node, 1);
  EXPECT_THAT(here.others(), testing::UnorderedElementsAre(0, 1));
}

TEST(Meeting, WhoDoesNotComeIsNamedToAll) {
  const test::OwnedPort port;
  Meeting meeting{.nodes = 2,
                  .host = "127.0.0.1",
                  .port = port.port(),
                  .hosts = true,
                  .expected = {"127.0.0.1", "10.0.0.9"},
                  .timeout = 300ms};
  try {
    (void)meet(
        meeting, {.wanted_rank = 0, .address = "127.0.0.1", .nodes = 2}, [](const std::string&) {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 87),
              "[launch.nodes] not all nodes came: waiting for 1 of 2 nodes: 10.0.0.9, 0 s of 0 s");
  }
}

TEST(Meeting, SaysWhoIsMissing) {
  Meeting meeting{.nodes = 3, .timeout = 300s};
  EXPECT_EQ(describe_wait(meeting, {"10.0.0.1"}, 12s),
            "waiting for 2 of 3 nodes (there: 10.0.0.1), 12 s of 300 s");
  meeting.expected = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
  EXPECT_EQ(describe_wait(meeting, {"10.0.0.1", "10.0.0.2"}, 12s),
            "waiting for 1 of 3 nodes: 10.0.0.3, 12 s of 300 s");
}

}  // namespace
}  // namespace argosy::launch
