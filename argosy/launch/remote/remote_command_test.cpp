#include "argosy/launch/remote/remote_command.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/launch/options.h"

#include "tests/support/temp_dir.h"

namespace argosy::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RemoteCommand, QuotesForAShell) {
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(RemoteCommand, SaysWhichNodeAHostIs) {
  const RemoteJob job{.hosts = {{.host = "user@a", .slots = 2}, {.host = "b"}},
                      .port = 20000,
                      .argosy = "/opt/argosy",
                      .folder = "/my data",
                      .options = {"--max_restarts=1"},
                      .command = {"train", "it's"}};
  const std::string first = remote_command(job, 0);
  EXPECT_THAT(first, testing::StartsWith("exec sh -c '"));
  EXPECT_THAT(first, HasSubstr("--leash --nnodes=2 --node_rank=0 --master=a:20000"));
  EXPECT_THAT(first, HasSubstr("--nproc_per_node=2 -- "));
  EXPECT_THAT(remote_command(job, 1), HasSubstr("--node_rank=1"));
  EXPECT_THAT(remote_command(job, 1), testing::Not(HasSubstr("nproc")));
}

TEST(RemoteCommand, HandsOnAllOptionsButThoseThatNameTheNodes) {
  const test::TempDir folder;
  const std::string hosts = (folder.path() / "hosts").string();
  std::ofstream(hosts) << "a\nb\n";
  const ParsedLaunch parsed = parse_launch({"--hostfile=" + hosts,
                                            "--ssh",
                                            "--standalone=false",
                                            "--env",
                                            "A=1",
                                            "--env=B=2",
                                            "--max_restarts=3",
                                            "-m",
                                            "x"},
                                           [](const char*) { return std::nullopt; });
  EXPECT_THAT(
      options_for_hosts(parsed.given),
      testing::UnorderedElementsAre("--module=1", "--env=A=1", "--env=B=2", "--max_restarts=3"));
}

}  // namespace
}  // namespace argosy::launch
