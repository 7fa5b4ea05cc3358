#include "argosy/launch/remote/remote_command.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/launch/options.h"
#include "argosy/os/fd.h"
#include "argosy/os/subprocess.h"

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
  EXPECT_THAT(first, HasSubstr("--leash --nnodes=2 --node_rank=0 "));
  EXPECT_THAT(first, HasSubstr("--master=a:20000"));
  EXPECT_THAT(first, HasSubstr("--nproc_per_node=2 -- "));
  EXPECT_THAT(remote_command(job, 1), HasSubstr("--node_rank=1"));
  EXPECT_THAT(remote_command(job, 1), testing::Not(HasSubstr("nproc")));
}

TEST(RemoteCommand, AShellSeesOneWordInTheNameOfAHost) {
  const test::TempDir folder;
  const std::string harm = (folder.path() / "harm").string();
  const RemoteJob job{.hosts = {{.host = "a;touch${IFS}" + harm}},
                      .port = 20000,
                      .argosy = "/bin/echo",
                      .folder = "/",
                      .command = {"train"}};
  const os::Pipe in = os::make_pipe().or_throw<Error>("test");
  const os::Pipe out = os::make_pipe().or_throw<Error>("test");
  ASSERT_TRUE(os::write_all(in.write.get(), "token\n").ok());
  auto shell = os::Subprocess::spawn({.args = {"/bin/sh", "-c", remote_command(job, 0)},
                                      .env = os::environ_list(),
                                      .stdin_fd = in.read.get(),
                                      .stdout_fd = out.write.get()})
                   .or_throw<Error>("test");
  const auto end = shell.wait(Deadline::after(std::chrono::seconds(20)));
  ASSERT_TRUE(end.ok() && *end && (*end)->ok());
  std::string said(size_t{1} << 10, '\0');
  said.resize(static_cast<size_t>(::read(out.read.get(), said.data(), said.size())));
  EXPECT_THAT(said, HasSubstr(" --master=a;touch${IFS}" + harm + ":20000 -- train\n"));
  EXPECT_FALSE(std::filesystem::exists(harm));
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
