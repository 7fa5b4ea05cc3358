#include "argosy/rendezvous/clusters/host_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::rendezvous {
namespace {

using testing::ElementsAre;

TEST(HostLists, AreExpanded) {
  EXPECT_THAT(expand_hosts("gpu[001-003,7],login1"),
              ElementsAre("gpu001", "gpu002", "gpu003", "gpu7", "login1"));
  EXPECT_THAT(expand_hosts("node1"), ElementsAre("node1"));
  EXPECT_THAT(expand_hosts("r[1-2]n[09-10].site"),
              ElementsAre("r1n09.site", "r1n10.site", "r2n09.site", "r2n10.site"));
  EXPECT_THAT(expand_hosts("a[5]"), ElementsAre("a5"));
}

TEST(HostLists, WhatIsNoneIsRefused) {
  for (const char* bad : {"",
                          "a,,b",
                          "a[1",
                          "a]1[",
                          "a[[1]]",
                          "a[2-1]",
                          "a[x]",
                          "a[]",
                          "a[1-]",
                          "a[1-9999999]",
                          "a[1-1000000]b[1-1000000]"}) {
    EXPECT_THROW((void)expand_hosts(bad), ConfigError) << bad;
  }
}

TEST(HostLists, CountsToo) {
  EXPECT_THAT(expand_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expand_counts("4"), ElementsAre(4));
  for (const char* bad : {"", "2(x", "2(x0)", "(x2)", "2(y3)", "-1", "1,,2", "2(x99999999)"}) {
    EXPECT_THROW((void)expand_counts(bad), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace argosy::rendezvous
