#include "argosy/launch/remote/hostfile.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::launch {
namespace {

using testing::HasSubstr;

class HostFile : public testing::Test {
 protected:
  std::vector<HostLine> read(const std::string& content) {
    std::ofstream(path_) << content;
    return read_hostfile(path_);
  }
  test::TempDir folder_;
  std::string path_ = (folder_.path() / "hosts").string();
};

TEST_F(HostFile, IsReadInEveryonesForm) {
  const std::vector<HostLine> hosts =
      read("# ours\ngpu01 slots=4\n\n  user@gpu02:2  # the old one\n\tgpu03\n");
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].host, "gpu01");
  EXPECT_EQ(hosts[0].slots, 4);
  EXPECT_EQ(hosts[1].host, "user@gpu02");
  EXPECT_EQ(hosts[1].address(), "gpu02");
  EXPECT_EQ(hosts[1].slots, 2);
  EXPECT_EQ(hosts[2].slots, 0);
}

TEST_F(HostFile, SaysWhichLineIsWrong) {
  for (const char* bad :
       {"a b", "a slots=0", "a slots=x", "a:", "a:0", ":3", "-oProxyCommand=x", "u@"}) {
    EXPECT_THAT(test::error_text<UsageError>([&] { (void)read(std::string("ok\n") + bad); }),
                HasSubstr("hosts:2: expected HOST"))
        << bad;
  }
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)read("a\nuser@a\n"); }),
              HasSubstr("hosts:2: a stands there twice"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)read("# none\n"); }),
              HasSubstr("names no host"));
  EXPECT_THAT(test::error_text<UsageError>([] { (void)read_hostfile("/no/such"); }),
              HasSubstr("/no/such"));
}

}  // namespace
}  // namespace argosy::launch
