#include "argosy/rendezvous/host_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::rendezvous {
namespace {

TEST(HostOf, FindsTheHostWhateverStandsBehindIt) {
  EXPECT_EQ(host_of("grpc://10.0.0.1:29400"), "10.0.0.1");
  EXPECT_EQ(host_of("grpc://node1:29400#run/1a2b:0/2/#world/"), "node1");
  EXPECT_EQ(host_of("grpc://0.0.0.0:29400 (hosted here)#run/a:b/"), "0.0.0.0");
  EXPECT_EQ(host_of("grpc://::1:29400#world/"), "::1");
  EXPECT_EQ(host_of("file:///tmp/a:b/store#run/1:0/"), "");
  EXPECT_EQ(host_of("in_process"), "");
}

TEST(SourceAddress, IsNeverLoopback) {
  EXPECT_EQ(source_address("127.0.0.1"), "");
  EXPECT_EQ(source_address("0.0.0.0"), "");  // what rank 0 says that listens on all interfaces
  EXPECT_EQ(source_address("no such host"), "");
}

std::string no_route(const std::string& /*host*/) {
  return {};
}

TEST(ChooseAddress, LoopbackWhenAllShareAHost) {
  EXPECT_EQ(choose_address({"a", "10.0.0.1"}, {{"a", "10.0.0.1"}}, no_route), "127.0.0.1");
}

TEST(ChooseAddress, TheOneTowardsTheStore) {
  EXPECT_EQ(choose_address({"a", "10.0.0.1"}, {{"b", ""}}, no_route), "10.0.0.1");
}

TEST(ChooseAddress, OnTheStoresHostTheOneTowardsARankElsewhere) {
  // The host has a bridge for containers too, which comes first in the list of interfaces.
  const auto route = [](const std::string& host) {
    return host == "10.0.0.2" ? std::string("10.0.0.1") : std::string("172.17.0.1");
  };
  EXPECT_EQ(choose_address({"a", ""}, {{"a", "172.17.0.9"}, {"b", ""}, {"b", "10.0.0.2"}}, route),
            "10.0.0.1");
}

}  // namespace
}  // namespace argosy::rendezvous
