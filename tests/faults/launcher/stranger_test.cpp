// Processes that the launcher has not started: children it has had since before it was argosy, for
// a shell that execs keeps its number; and those whose numbers /proc tells in another's counting.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/subprocess.h"

#include "launched.h"
#include "tests/support/temp_dir.h"

namespace argosy::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(LauncherStrangers, AReaderByProcessSubstitutionGetsTheReport) {
  Launched job({.shell = "exec \"$0\" launch --nproc_per_node 2 --shutdown_timeout 1000 "
                         "sh -c 'echo words; exit 3' 2> >(sed 's/^/E: /' >&2)"});
  EXPECT_EQ(job.wait(), 3);
  EXPECT_THAT(job.err(), HasSubstr("E: [launch] exit code 3"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherStrangers, AChildFromBeforeTheLauncherOutlivesIt) {
  // What it watches is its parent: the shell, then the launcher, in the end a zombie.
  Launched job({.shell = "(while read -r stat </proc/$$/stat && [[ $stat != *') Z '* ]]; do "
                         "sleep 0.02; done; echo outlived it) & "
                         "exec \"$0\" launch --nproc_per_node 1 --shutdown_timeout 1000 true"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(job.out(), "outlived it\n");
}

TEST(LauncherStrangers, OneThatEndsMeanwhileIsReaped) {
  // Its number may come again, as that of a process which a rank leaves behind.
  Launched job({.shell = "sleep 0.01 & echo stranger $!; exec \"$0\" launch --nproc_per_node 1 "
                         "sh -c 'while [ -e /proc/'$!' ]; do sleep 0.01; done; echo reaped'"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("[rank 0] reaped\n"));
}

TEST(LauncherStrangers, WhatOneStartsIsLeftAloneToo) {
  const TempDir folder;  // the stranger ends, and its child is adopted, while the rank runs
  Launched job(
      {.shell = "cd " + folder.path().string() +
                "; (sleep 1000 >/dev/null 2>&1 & echo orphan $!; until [ -e ready ]; do sleep "
                "0.01; done) & parent=$!; exec \"$0\" launch --log_dir '' "
                "--nproc_per_node 1 --shutdown_timeout 1000 sh -c "
                "'touch ready; while [ -e /proc/'$parent' ]; do sleep 0.01; done'"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  const std::vector<std::string> orphan = lines_of(job.out(), "orphan ");
  ASSERT_EQ(orphan.size(), 1U) << job.out();
  EXPECT_EQ(state_of(std::stoi(orphan.front())), 'S');
}

TEST(LauncherStrangers, NumbersOfAnotherPidNamespaceAreNoChildren) {
  os::Subprocess probe = *os::Subprocess::spawn({.args = {"unshare", "-pf", "true"}});
  if (const auto ended = probe.wait(Deadline::after(std::chrono::seconds(30)));
      !ended.ok() || !*ended || !(*ended)->ok()) {
    GTEST_SKIP() << "no pid namespace may be made here";
  }
  // LeakSanitizer finds the threads that it must stop in /proc, by numbers that are wrong here.
  Launched job({.shell = "exec unshare -pf \"$0\" launch --nproc_per_node 1 "
                         "--shutdown_timeout 1000 echo ran",
                .env = {"ASAN_OPTIONS=detect_leaks=0"}});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(job.out(), "[rank 0] ran\n");
}

}  // namespace
}  // namespace argosy::test
