#include "argosy/os/addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::os {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Addresses, LoopbackIsOursAndLast) {
  EXPECT_TRUE(is_loopback(local_addresses().back()));
  EXPECT_THAT(local_addresses(), Contains("127.0.0.1"));
  EXPECT_TRUE(*is_this_host("127.0.0.1"));
  EXPECT_TRUE(*is_this_host("127.3.2.1"));
  EXPECT_FALSE(*is_this_host("192.0.2.1"));  // TEST-NET-1: nobody's
}

TEST(Addresses, NamesBecomeAddressesIPv4First) {
  EXPECT_EQ(resolve_host("localhost")->front(), "127.0.0.1");
  EXPECT_EQ(resolve_host("::1")->front(), "::1");
  EXPECT_TRUE(is_ipv4("127.0.0.1") && !is_ipv4("::1"));
  EXPECT_TRUE(is_loopback("::1") && is_loopback("127.9.9.9") && !is_loopback("10.127.0.1"));
  EXPECT_THAT(resolve_host("no.such.host.invalid").failure().what,
              HasSubstr("host \"no.such.host.invalid\" has no address: "));
  EXPECT_FALSE(is_this_host("no.such.host.invalid").ok());
}

TEST(Addresses, TheSourceIsTheOneTowardsTheHost) {
  EXPECT_EQ(*source_address("127.0.0.1"), "127.0.0.1");
  const Result<std::string> outside = source_address("192.0.2.1");
  if (outside.ok()) {
    EXPECT_THAT(local_addresses(), Contains(*outside));
    EXPECT_FALSE(is_loopback(*outside));
  } else {
    EXPECT_THAT(outside.failure().what, HasSubstr("no route leads to 192.0.2.1: "));
  }
}

TEST(Addresses, OfAnInterface) {
  EXPECT_EQ(*interface_address("lo"), "127.0.0.1");
  const std::string why = interface_address("none9").failure().what;
  EXPECT_THAT(why, HasSubstr("no interface \"none9\" with an address: there are "));
  EXPECT_THAT(why, HasSubstr("lo 127.0.0.1"));
}

}  // namespace
}  // namespace argosy::os
