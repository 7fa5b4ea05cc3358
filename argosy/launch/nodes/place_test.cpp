#include "argosy/launch/nodes/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/addresses.h"

#include "tests/support/error_text.h"

namespace argosy::launch {
namespace {

using testing::HasSubstr;

TEST(Place, WhoHasTheAddressOfTheMeetingHostsIt) {
  const Place here = find_place({.nodes = 2, .meet_host = "127.0.0.1", .meet_port = 9}, "t");
  EXPECT_TRUE(here.meeting.hosts);
  EXPECT_TRUE(here.meeting.may_join);
  EXPECT_EQ(here.wanted_rank, 0);
  EXPECT_EQ(here.address, "127.0.0.1");
  // TEST-NET-1: nobody's. The address is the one that would be used; nothing is sent.
  const auto elsewhere = [] {
    const Place place = find_place({.nodes = 2, .meet_host = "192.0.2.1", .meet_port = 9}, "t");
    EXPECT_FALSE(place.meeting.hosts);
    EXPECT_EQ(place.wanted_rank, -1);
    EXPECT_THAT(os::local_addresses(), testing::Contains(place.address));
  };
  const std::string outcome = test::error_text<ConfigError>(elsewhere);
  EXPECT_THAT(outcome, testing::AnyOf("nothing was thrown", HasSubstr("no route leads to")));
}

TEST(Place, NodeRanksAndListsSayIt) {
  EXPECT_FALSE(
      find_place({.nodes = 2, .node_rank = 1, .meet_host = "127.0.0.1", .address = "127.0.0.9"}, "")
          .meeting.hosts);
  const Place second =
      find_place({.nodes = 2, .meet_host = "192.0.2.1", .ips = {"192.0.2.1", "127.0.0.1"}}, "");
  EXPECT_FALSE(second.meeting.hosts);
  EXPECT_EQ(second.address, "127.0.0.1");
  const Place first =
      find_place({.nodes = 2, .meet_host = "127.0.0.1", .ips = {"127.0.0.1", "192.0.2.1"}}, "");
  EXPECT_TRUE(first.meeting.hosts);
  EXPECT_FALSE(first.meeting.may_join);
}

TEST(Place, WhatCannotWorkIsExplained) {
  EXPECT_THAT(test::error_text<ConfigError>([] {
                (void)find_place({.nodes = 2, .meet_host = "192.0.2.1", .ips = {"192.0.2.1"}}, "");
              }),
              HasSubstr("none of --ips 192.0.2.1 is an address of this node, which has "));
  EXPECT_THAT(test::error_text<ConfigError>(
                  [] { (void)find_place({.nodes = 2, .meet_host = "no.such.host.invalid"}, ""); }),
              HasSubstr("host \"no.such.host.invalid\" has no address"));
}

/// Debian's /etc/hosts, and docker's, give a host's own name such an address; "ip6-localhost" and
/// the like do the same here.
TEST(Place, ANameThatMeansTheLoopbackHereIsExplainedOnEveryNode) {
  std::string name;
  for (const char* candidate : {"ip6-localhost", "localhost.localdomain", "localhost4"}) {
    const auto found = os::resolve_host(candidate);
    name = found.ok() && os::is_loopback(found->front()) ? candidate : name;
  }
  if (name.empty()) {
    name = os::host_name();
    const auto found = os::resolve_host(name);
    if (!found.ok() || !os::is_loopback(found->front())) {
      GTEST_SKIP() << "no name but localhost leads to the loopback here";
    }
  }
  for (const int node : {0, 1}) {
    const NodeOptions options{.nodes = 2, .node_rank = node, .meet_host = name, .meet_port = 9};
    EXPECT_THAT(test::error_text<ConfigError>([&] { (void)find_place(options, "t"); }),
                testing::AllOf(HasSubstr("the meeting place \"" + name + "\" is "),
                               HasSubstr("where no other node can reach it (see /etc/hosts)")))
        << node;
  }
}

TEST(Place, AnAddressOfNobodyHereIsWarnedOf) {
  const NodeOptions options{
      .nodes = 2, .node_rank = 0, .meet_host = "127.0.0.1", .address = "192.0.2.7"};
  EXPECT_THAT(find_place(options, "t").warning, HasSubstr("--host 192.0.2.7 is no address of"));
}

TEST(Place, AnInterfaceGivesTheAddress) {
  const NodeOptions options{
      .nodes = 2, .node_rank = 0, .meet_host = "localhost", .interface = "lo", .bind = "0.0.0.0"};
  EXPECT_EQ(find_place(options, "").address, "127.0.0.1");
  EXPECT_EQ(find_place(options, "").meeting.bind, "0.0.0.0");
  EXPECT_THAT(test::error_text<ConfigError>([] {
                (void)find_place({.nodes = 2, .meet_host = "127.0.0.1", .interface = "none9"}, "");
              }),
              HasSubstr("no interface \"none9\""));
}

}  // namespace
}  // namespace argosy::launch
