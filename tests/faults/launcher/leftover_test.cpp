// What ranks leave behind ends with the job, wherever it has gone. Each grace is far longer than
// the test may take: nothing but the signal that comes first may be needed.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/fd.h"

#include "launched.h"
#include "tests/support/temp_dir.h"

namespace argosy::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using namespace std::chrono_literals;

/// What the children of this process that it has waited for, and theirs, have used.
std::chrono::microseconds cpu_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

const std::vector<std::string> kLongGrace{"--shutdown_timeout", "1000"};

TEST(LauncherLeftovers, InTheRanksGroup) {
  Launched job(2, "sleep 1000 & (sleep 1000 &) ; echo started", kLongGrace);
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherLeftovers, InSessionsOfTheirOwn) {
  Launched job(2,
               "setsid sleep 1000 & setsid sh -c 'setsid sleep 1000 & sleep 1000' & sleep 0.05",
               kLongGrace);
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherLeftovers, ThatIgnoreSigterm) {
  Launched job(2,
               "setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' & sleep 0.1",
               {"--shutdown_timeout", "0.2"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(
      job.err(),
      HasSubstr(
          "[launch] processes that the ranks started did not stop within 0.2 s; sending SIGKILL"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherLeftovers, OfAJobThatFailed) {
  Launched job(3, "setsid sleep 1000 & [ $RANK = 1 ] && exit 5; sleep 1000", kLongGrace);
  EXPECT_EQ(job.wait(), 5);
  EXPECT_THAT(job.survivors(), IsEmpty());
}

/// Ranks of another user than root, who start `./p`, a Perl that is root and that they cannot end.
class LauncherLeftoversOfRoot : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "needs root, to be two users";
    }
  }
  /// `script` of each rank; the job's exit code.
  int run(int ranks, const std::string& script) {
    const std::string nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
    job_.emplace(
        Launched::Options{.shell = "cd " + folder_.path().string() +
                                   " && cp /usr/bin/perl p && chmod 4755 p && chmod 777 . && " +
                                   nobody + "test -x \"$0\" || exit 77; exec " + nobody +
                                   "\"$0\" launch --log_dir '' --json end.json --max_restarts 3 "
                                   "--shutdown_timeout 0.2 -n " +
                                   std::to_string(ranks) + " sh -c '" + script + "'"});
    return job_->wait();
  }
  [[nodiscard]] std::string json() const { return *os::read_file(folder_.path() / "end.json"); }

  TempDir folder_;
  std::optional<Launched> job_{};
};

TEST_F(LauncherLeftoversOfRoot, AreNamedWithTheirChildrenAndNotRestartedOver) {
  const int code =
      run(1, R"(./p -e "\$< = 0; \$0 = q(p) . chr(7); fork; sleep 600" & sleep 0.3; exit 5)");
  if (code == 77) {
    GTEST_SKIP() << "another user cannot run the launcher from where it is";
  }
  EXPECT_EQ(code, 5) << job_->err();
  EXPECT_THAT(job_->err(),
              ContainsRegex(
                  ".launch. SIGKILL did not end pid [0-9]+ .p[?], of user 0., pid [0-9]+ .p[?], of "
                  "user 0.; left behind. See "));
  EXPECT_THAT(job_->err(), HasSubstr("exit code 5; processes were left behind"));
  EXPECT_THAT(job_->err(), Not(HasSubstr("restart 1")));
  EXPECT_THAT(json(),
              ContainsRegex("\"left_behind\": .\n *\"pid [0-9]+ .p[?], of user 0.\",\n *\"pid"));
}

TEST_F(LauncherLeftoversOfRoot, ThatAreRanksAreNamedOnce) {
  const int code =
      run(2, R"([ $RANK = 1 ] && exec ./p -e "\$< = 0; print 1; sleep 600"; sleep 0.3; exit 5)");
  if (code == 77) {
    GTEST_SKIP() << "another user cannot run the launcher from where it is";
  }
  EXPECT_EQ(code, 5) << job_->err();
  EXPECT_THAT(job_->err(),
              ContainsRegex("rank 1, pid [0-9]+ .p, of user 0., did not end after SIGKILL"));
  EXPECT_THAT(job_->err(), Not(HasSubstr("SIGKILL did not end ")));
  EXPECT_THAT(job_->err(), HasSubstr("exit code 5; processes were left behind"));
  EXPECT_THAT(json(), ContainsRegex("\"left_behind\": .\n *\"pid [0-9]+ .p, of user 0.\"\n"));
}

TEST(LauncherLeftovers, OfAFailedJobAreWaitedForWithoutSpinning) {
  const auto before = cpu_of_children();
  Launched job(1,
               "setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' & "
               "sleep 0.1; exit 5",
               {"--shutdown_timeout", "3"});
  EXPECT_EQ(job.wait(), 5) << job.err();
  EXPECT_LT(cpu_of_children() - before, 1s);  // of the three that it waits
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherLeftovers, ALostGuardDelaysNothing) {
  Launched job({.args = {"--shutdown_timeout", "1000", "sh", "-c", "sleep 1000 & echo ready; cat"},
                .with_input = true});
  ASSERT_TRUE(job.wait_for_output("ready"));
  pid_t guard = 0;
  while ((guard = job.child_named("argosy-guard")) == 0) {  // it takes its name when it first runs
    std::this_thread::yield();
  }
  ::kill(guard, SIGKILL);
  ASSERT_TRUE(job.wait_for_error("[launch] the guard process was killed"));
  job.input().close();
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.survivors(), IsEmpty());
}

}  // namespace
}  // namespace argosy::test
