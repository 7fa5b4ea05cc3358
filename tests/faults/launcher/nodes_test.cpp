// Jobs of several nodes: real launchers that meet over gRPC on the loopback.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/strings.h"

#include "launched.h"
#include "tests/support/owned_port.h"
#include "tests/support/temp_dir.h"

namespace argosy::test {
namespace {

using namespace std::chrono_literals;

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// One launcher per node, all on this machine.
class Nodes {
 public:
  /// `ranks` for each node; `options` for all of them.
  explicit Nodes(const std::vector<int>& ranks,
                 const std::string& script,
                 const std::vector<std::string>& options = {}) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      add(static_cast<int>(i), static_cast<int>(ranks.size()), ranks[i], script, options);
    }
  }
  void add(int node,
           int nodes,
           int ranks,
           const std::string& script,
           const std::vector<std::string>& options,
           const std::string& token = "a secret of sixteen") {
    std::vector<std::string> args{"--nnodes=" + std::to_string(nodes),
                                  "--node_rank=" + std::to_string(node),
                                  "--master_addr=127.0.0.1",
                                  "--master_port=" + std::to_string(port_.port()),
                                  "--host=127.0.0." + std::to_string(node + 1),
                                  "--nproc_per_node=" + std::to_string(ranks),
                                  "--log_dir="};
    args.insert(args.end(), options.begin(), options.end());
    args.insert(args.end(), {"sh", "-c", std::string("R=") + RANK_PROGRAM + "; " + script});
    jobs_.push_back(std::make_unique<Launched>(
        Launched::Options{.args = args, .env = {"ARGOSY_TOKEN=" + token}}));
  }
  Launched& operator[](size_t node) { return *jobs_[node]; }
  std::vector<int> wait() {
    std::vector<int> codes;
    for (const auto& job : jobs_) {
      codes.push_back(job->wait());
    }
    return codes;
  }

 private:
  OwnedPort port_;
  std::vector<std::unique_ptr<Launched>> jobs_;
};

TEST(LauncherNodes, TheirRanksAreOneJob) {
  Nodes nodes(
      {1, 3, 2},
      "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, node $GROUP_RANK of "
      "$GROUP_WORLD_SIZE; echo place $MASTER_ADDR:$MASTER_PORT $ARGOSY_STORE $ARGOSY_RUN_ID "
      "$PADDLE_TRAINER_ENDPOINTS; echo mine $PADDLE_CURRENT_ENDPOINT");
  EXPECT_EQ(nodes.wait(), (std::vector<int>{0, 0, 0}));
  EXPECT_THAT(nodes[0].out(), HasSubstr("[rank 0] 0 of 6, 0 of 1, node 0 of 3\n"));
  EXPECT_THAT(nodes[1].out(), HasSubstr("[rank 3] 3 of 6, 2 of 3, node 1 of 3\n"));
  EXPECT_THAT(nodes[2].out(), HasSubstr("[rank 4] 4 of 6, 0 of 2, node 2 of 3\n"));
  EXPECT_THAT(nodes[2].out(), HasSubstr("[rank 5] mine 127.0.0.3:"));
  std::set<std::string> places;
  for (size_t node = 0; node < 3; ++node) {
    for (int rank = 0; rank < 6; ++rank) {
      for (const std::string& line :
           lines_of(nodes[node].out(), "[rank " + std::to_string(rank) + "] place ")) {
        places.insert(line);
      }
    }
  }
  EXPECT_EQ(places.size(), 1U);
  EXPECT_EQ(strings::split(*places.begin(), ',').size(), 6U);
}

TEST(LauncherNodes, TheFirstFailureIsNamedOnEveryNodeWithItsCodeAndHost) {
  Nodes nodes({2, 2}, "[ $RANK = 3 ] && { echo last words; kill -SEGV $$; }; sleep 1000");
  EXPECT_EQ(nodes.wait(), (std::vector<int>{139, 139}));
  for (size_t node = 0; node < 2; ++node) {
    EXPECT_THAT(nodes[node].err(), HasSubstr("[launch] rank 3 on "));
    EXPECT_THAT(nodes[node].err(), HasSubstr("was killed by SIGSEGV"));
    EXPECT_THAT(nodes[node].err(), HasSubstr("  | last words\n"));
    EXPECT_THAT(nodes[node].err(), HasSubstr("stopped by the launcher: ranks 0-2\n"));
    EXPECT_THAT(nodes[node].survivors(), IsEmpty());
  }
}

TEST(LauncherNodes, TheProgramThatFailedIsNamedNotOnesOwn) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "sleep 1000; : mine", {});
  nodes.add(1, 2, 1, "exit 3; : theirs", {});
  EXPECT_EQ(nodes.wait(), (std::vector<int>{3, 3}));
  for (size_t node = 0; node < 2; ++node) {
    EXPECT_THAT(nodes[node].err(), HasSubstr("exit 3; : theirs"));
    EXPECT_THAT(nodes[node].err(), Not(HasSubstr(": mine")));
  }
}

TEST(LauncherNodes, WriteTheirLogsToOneFolder) {
  const TempDir folder;
  Nodes nodes(
      {1, 2}, "echo here is $RANK in $ARGOSY_LOG_DIR", {"--log_dir=" + folder.path().string()});
  EXPECT_EQ(nodes.wait(), (std::vector<int>{0, 0}));
  std::set<std::string> names;
  std::set<std::string> runs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (entry.is_directory()) {
      runs.insert(entry.path().string());
    } else {
      names.insert(entry.path().filename().string());
    }
  }
  EXPECT_EQ(runs.size(), 1U);
  EXPECT_EQ(
      names,
      (std::set<std::string>{"all.log", "all.node1.log", "rank0.log", "rank1.log", "rank2.log"}));
  EXPECT_THAT(nodes[1].out(), HasSubstr("here is 2 in " + *runs.begin()));
}

TEST(LauncherNodes, RestartTogether) {
  Nodes nodes({1, 2},
              "echo life $ARGOSY_RESTART_COUNT; [ $ARGOSY_RESTART_COUNT = 1 ] && exit 0; "
              "[ $RANK = 2 ] && exit 9; sleep 1000",
              {"--max_restarts=2"});
  EXPECT_EQ(nodes.wait(), (std::vector<int>{0, 0}));
  EXPECT_THAT(nodes[0].out(), HasSubstr("[rank 0] life 1"));
  EXPECT_THAT(nodes[1].out(), HasSubstr("[rank 2] life 1"));
  EXPECT_THAT(nodes[0].err(), HasSubstr("[launch] restart 1 of 2 now"));
}

/// A rank of node 1 fails at each start but the last; node 0's uses its grace.
constexpr const char* kFailsOnNodeOne =
    "[ $RANK = 1 ] && { sleep 0.2; exit 9; }; "
    "trap 'echo asked; sleep ${SLOW:-0}; exit 0' TERM; "
    "echo life $ARGOSY_RESTART_COUNT; while :; do sleep 0.02; done";

TEST(LauncherNodes, NodeZerosOptionsSayWhetherAllStartAgain) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, kFailsOnNodeOne, {"--max_restarts=1"});
  nodes.add(1, 2, 1, kFailsOnNodeOne, {});
  EXPECT_EQ(nodes.wait(), (std::vector<int>{9, 9}));
  EXPECT_THAT(nodes[1].err(), HasSubstr("[launch] restart 1 of 1 now"));
  EXPECT_THAT(nodes[1].err(), HasSubstr("[launch] exit code 9 after 1 restart"));
  EXPECT_THAT(nodes[0].out(), HasSubstr("[rank 0] life 1"));
}

TEST(LauncherNodes, ASignalBeforeARestartStopsAll) {
  for (const size_t told : {1U, 0U}) {
    Nodes nodes({1, 1}, kFailsOnNodeOne, {"--max_restarts=5"});
    ASSERT_TRUE(nodes[told].wait_for_error("[launch] restart 2 of 5 in 1.0 s"));
    nodes[told].signal(SIGTERM);
    EXPECT_EQ(nodes.wait(), (std::vector<int>{143, 143}));
    EXPECT_THAT(nodes[0].out(), Not(HasSubstr("life 2")));
  }
}

TEST(LauncherNodes, ALauncherThatDiesWhileOthersStopIsMissed) {
  Nodes nodes({}, "");
  const std::vector<std::string> options{"--max_restarts=5", "--env=SLOW=0.4"};
  nodes.add(0, 2, 1, kFailsOnNodeOne, options);
  nodes.add(1, 2, 1, kFailsOnNodeOne, options);
  ASSERT_TRUE(nodes[0].wait_for_output("asked"));  // its own rank has ended, and it has said so
  nodes[1].signal(SIGKILL);
  EXPECT_EQ(nodes[0].wait(), 9);
  EXPECT_THAT(nodes[0].err(), HasSubstr("exited with code 9"));
  EXPECT_THAT(nodes[0].err(), HasSubstr("[launch] exit code 9"));
  EXPECT_THAT(nodes[0].out(), testing::EndsWith("asked\n"));
}

TEST(LauncherNodes, NodeZeroIsMissedThoughItsRanksHaveEnded) {
  Nodes nodes({1, 1, 1}, "[ $RANK = 0 ] && exit; echo ready; sleep 1000");
  ASSERT_TRUE(nodes[1].wait_for_output("ready"));
  ASSERT_TRUE(nodes[2].wait_for_output("ready"));
  nodes[0].signal(SIGKILL);
  EXPECT_EQ(nodes[1].wait(), 1);
  EXPECT_EQ(nodes[2].wait(), 1);
  EXPECT_THAT(nodes[2].err(), HasSubstr("[launch] node 0 ("));
  EXPECT_THAT(nodes[2].err(), HasSubstr("its launcher was killed"));
}

TEST(LauncherNodes, WhoGoesBeforeAllAreThereIsNotCounted) {
  Nodes nodes({}, "");
  nodes.add(0, 3, 1, "echo fine", {"--timeout=60"});
  nodes.add(1, 3, 1, "echo fine", {"--timeout=60"});
  // It says who is there once it has arrived itself.
  ASSERT_TRUE(nodes[1].wait_for_error("(there: 127.0.0.1, 127.0.0.2)"));
  nodes[1].signal(SIGINT);
  EXPECT_EQ(nodes[1].wait(), 130);
  nodes.add(2, 3, 1, "echo fine", {"--timeout=60"});
  nodes.add(1, 3, 1, "echo fine", {"--timeout=60"});
  EXPECT_EQ(nodes[0].wait(), 0);
  EXPECT_EQ(nodes[2].wait(), 0);
  EXPECT_EQ(nodes[3].wait(), 0);
  EXPECT_THAT(nodes[3].out(), HasSubstr("[rank 1] fine"));
}

TEST(LauncherNodes, WhatARankDiedOfIsToldThoughItsLauncherIsKilledThen) {
  Nodes nodes({1, 2},
              "echo ready; if [ $RANK = 2 ]; then trap '' TERM; while :; do sleep 0.02; done; fi; "
              "[ $RANK = 1 ] && { sleep 0.3; kill -SEGV $$; }; sleep 1000",
              {"--shutdown_timeout=60"});
  ASSERT_TRUE(nodes[0].wait_for_error("has a rank that failed"));
  nodes[1].signal(SIGKILL);
  EXPECT_EQ(nodes[0].wait(), 139);
  EXPECT_THAT(nodes[0].err(), HasSubstr("[launch] node 1 ("));
  EXPECT_THAT(nodes[0].err(), HasSubstr("its launcher was killed"));
  EXPECT_THAT(nodes[0].err(), HasSubstr("rank 1 on "));
  EXPECT_THAT(nodes[0].err(), HasSubstr("was killed by SIGSEGV"));
}

TEST(LauncherNodes, TheStoreIsWhereTheyMet) {
  // The launchers meet at 127.0.0.1, whatever addresses the nodes have among themselves.
  Nodes nodes({1, 1},
              "bash -c 'exec 3<>/dev/tcp/${ARGOSY_STORE%:*}/${ARGOSY_STORE##*:} && echo reached'",
              {"--host=127.0.0.9"});
  EXPECT_EQ(nodes.wait(), (std::vector<int>{0, 0}));
  EXPECT_THAT(nodes[0].out(), HasSubstr("reached"));
  EXPECT_THAT(nodes[1].out(), HasSubstr("reached"));
}

/// Prints the addresses, as the kernel writes them, at which the store's port is listened to.
constexpr const char* kListens =
    "cat /proc/net/tcp /proc/net/tcp6 | grep -i \":$(printf %04X ${ARGOSY_STORE##*:}) 0*:0000 0A\" "
    "| "
    "while read n at rest; do echo listens at ${at%:*}; done";

TEST(LauncherNodes, TheStoreIsOpenOnlyWhereTheyMeetUnlessAskedFor) {
  Nodes meeting_only({1, 1}, kListens);
  EXPECT_EQ(meeting_only.wait(), (std::vector<int>{0, 0}));
  EXPECT_THAT(lines_of(meeting_only[0].out(), "[rank 0] listens at "),
              testing::ElementsAre(testing::EndsWith("0100007F")));  // perhaps IPv6 has it mapped
  Nodes anywhere({1, 1}, kListens, {"--listen=0.0.0.0"});
  EXPECT_EQ(anywhere.wait(), (std::vector<int>{0, 0}));
  EXPECT_THAT(lines_of(anywhere[0].out(), "[rank 0] listens at "),
              testing::Each(testing::ContainsRegex("^0+$")));
  EXPECT_THAT(anywhere[0].out(), HasSubstr("listens at 0"));
}

TEST(LauncherNodes, JobsOfDifferentNamesDoNotMix) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "true", {"--rdzv_id=a"});
  nodes.add(1, 2, 1, "true", {"--rdzv_id=b"});
  EXPECT_EQ(nodes.wait(), (std::vector<int>{1, 1}));
  EXPECT_THAT(nodes[1].err(), HasSubstr("belongs to job \"a\""));
}

TEST(LauncherNodes, AKilledLauncherIsNamedAndLeavesNothing) {
  for (const size_t victim : {1U, 0U}) {
    Nodes nodes({1, 2},
                "trap '' TERM; echo ready; while :; do sleep 0.05; done",
                {"--shutdown_timeout=0.3"});
    ASSERT_TRUE(nodes[0].wait_for_output("ready"));
    ASSERT_TRUE(nodes[1].wait_for_output("ready", 2));
    nodes[victim].signal(SIGKILL);
    EXPECT_EQ(nodes[1 - victim].wait(), 1);
    EXPECT_THAT(nodes[1 - victim].err(),
                HasSubstr("127.0.0." + std::to_string(victim + 1) +
                          "): its launcher was killed, or its machine"));
    EXPECT_THAT(nodes[0].survivors(), IsEmpty());
    EXPECT_THAT(nodes[1].survivors(), IsEmpty());
  }
}

TEST(LauncherNodes, OneThatFallsSilentIsLostLongBeforeItsConnection) {
  for (const size_t victim : {1U, 0U}) {
    Nodes nodes({1, 1}, "echo ready; sleep 1000", {"--rdzv_conf=keep_alive_interval=0.1"});
    ASSERT_TRUE(nodes[0].wait_for_output("ready"));
    ASSERT_TRUE(nodes[1].wait_for_output("ready"));
    const auto stopped = std::chrono::steady_clock::now();
    nodes[victim].signal(SIGSTOP);
    EXPECT_EQ(nodes[1 - victim].wait(), 1);
    // gRPC's own keepalive would take 10 s and more.
    EXPECT_LT(std::chrono::steady_clock::now() - stopped, std::chrono::seconds(9));
    EXPECT_THAT(nodes[1 - victim].err(),
                HasSubstr("127.0.0." + std::to_string(victim + 1) + "): its launcher was killed"));
    nodes[victim].signal(SIGCONT);
    EXPECT_EQ(nodes[victim].wait(), 1);
    EXPECT_THAT(nodes[victim].survivors(), IsEmpty());
  }
}

TEST(LauncherNodes, OneThatIsTakenForLostIsTold) {
  // Node 0 still waits for a rank that does not stop when node 1 wakes up.
  Nodes nodes({1, 1},
              "[ $RANK = 0 ] && trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done",
              {"--keep_alive_interval=0.1", "--shutdown_timeout=4"});
  ASSERT_TRUE(nodes[0].wait_for_output("ready"));
  ASSERT_TRUE(nodes[1].wait_for_output("ready"));
  nodes[1].signal(SIGSTOP);
  ASSERT_TRUE(nodes[0].wait_for_output("asked"));
  nodes[1].signal(SIGCONT);
  ASSERT_TRUE(nodes[1].wait_for_error("the other nodes gave this one up as lost"));
  EXPECT_EQ(nodes.wait(), (std::vector<int>{1, 1}));
}

TEST(LauncherNodes, TheyAndTheirRanksTalkOverTls) {
  Nodes nodes({2, 1}, "echo tls $ARGOSY_TLS; exec $R", {"--tls"});
  ASSERT_TRUE(nodes[0].wait_for_output("joined 3 ranks", 2));
  ASSERT_TRUE(nodes[1].wait_for_output("joined 3 ranks"));
  EXPECT_THAT(nodes[1].out(), HasSubstr("[rank 2] tls 1\n"));
  EXPECT_THAT(nodes[1].all_err(), HasSubstr("by certificates made from ARGOSY_TOKEN"));
  nodes[0].signal(SIGTERM);
  EXPECT_EQ(nodes.wait(), (std::vector<int>{143, 143}));
}

TEST(LauncherNodes, WithoutTlsOrWithAnotherTokenNobodyIsLetIn) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "echo fine", {"--tls"});
  nodes.add(1, 2, 1, "echo fine", {"--tls"}, "another secret of sixteen");
  EXPECT_EQ(nodes[1].wait(), 1);
  EXPECT_THAT(
      nodes[1].err(),
      HasSubstr("is not trusted: its certificate is not signed by the authority of this job"));
  nodes.add(1, 2, 1, "echo fine", {"--timeout=1"});
  EXPECT_EQ(nodes[2].wait(), 1);
  EXPECT_THAT(nodes[2].err(), HasSubstr("--tls"));
  nodes.add(1, 2, 1, "echo fine", {"--tls"});
  EXPECT_EQ(nodes[0].wait(), 0);
  EXPECT_EQ(nodes[3].wait(), 0);
}

TEST(LauncherNodes, TlsNeedsATokenThatCannotBeGuessed) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "true", {"--tls"}, "short");
  EXPECT_EQ(nodes[0].wait(), 2);
  EXPECT_THAT(nodes[0].err(), HasSubstr("16 random characters or more in ARGOSY_TOKEN"));
  nodes.add(1, 2, 1, "true", {"--tls"}, "");
  EXPECT_EQ(nodes[1].wait(), 2);
  EXPECT_THAT(nodes[1].err(), HasSubstr("is not set"));
}

TEST(LauncherNodes, AKilledOneIsMissedAtOnceNotByItsSilence) {
  Nodes nodes(
      {1, 1}, "echo ready; sleep 1000", {"--keep_alive_interval=5", "--keep_alive_max_attempt=2"});
  ASSERT_TRUE(nodes[0].wait_for_output("ready"));
  ASSERT_TRUE(nodes[1].wait_for_output("ready"));
  const auto killed = std::chrono::steady_clock::now();
  nodes[1].signal(SIGKILL);
  EXPECT_EQ(nodes[0].wait(), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(7));
  EXPECT_THAT(nodes[0].err(), HasSubstr("its launcher was killed"));
}

TEST(LauncherNodes, ASignalToOneStopsAll) {
  Nodes nodes({1, 1}, "echo ready; sleep 1000");
  ASSERT_TRUE(nodes[0].wait_for_output("ready"));
  ASSERT_TRUE(nodes[1].wait_for_output("ready"));
  nodes[1].signal(SIGINT);
  EXPECT_EQ(nodes.wait(), (std::vector<int>{130, 130}));
  EXPECT_THAT(nodes[0].err(), Not(HasSubstr("ended otherwise")));  // its ranks got SIGINT as well
  EXPECT_THAT(nodes[0].err(), HasSubstr("node 1 ("));
  EXPECT_THAT(nodes[0].err(), HasSubstr("was told to stop"));
}

TEST(LauncherNodes, ASecondSignalToOneKillsAtOnceOnAll) {
  Nodes nodes(
      {1, 1}, "trap '' INT; echo ready; while :; do sleep 0.1; done", {"--shutdown_timeout=60"});
  for (size_t node = 0; node < 2; ++node) {
    ASSERT_TRUE(nodes[node].wait_for_output("ready", 1));
  }
  nodes[1].signal(SIGINT);
  ASSERT_TRUE(nodes[0].wait_for_error("was told to stop"));
  std::this_thread::sleep_for(600ms);  // only so much later is it a second request
  nodes[1].signal(SIGINT);
  EXPECT_EQ(nodes.wait(), (std::vector<int>{130, 130}));
  for (size_t node = 0; node < 2; ++node) {
    EXPECT_THAT(nodes[node].err(), HasSubstr("killing the ranks at once"));
    EXPECT_THAT(nodes[node].err(), Not(HasSubstr("did not say in time")));
    EXPECT_THAT(nodes[node].survivors(), IsEmpty());
  }
}

TEST(LauncherNodes, OneAfterAnotherIsToldToStopAndTheRanksHaveTheirTime) {
  Nodes nodes({1, 1},
              "trap 'sleep 1.5; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done");
  for (size_t node = 0; node < 2; ++node) {
    ASSERT_TRUE(nodes[node].wait_for_output("ready", 1));
  }
  nodes[1].signal(SIGTERM);
  std::this_thread::sleep_for(700ms);
  nodes[0].signal(SIGTERM);
  EXPECT_EQ(nodes.wait(), (std::vector<int>{143, 143}));
  for (size_t node = 0; node < 2; ++node) {
    EXPECT_THAT(nodes[node].out(), HasSubstr("saved"));
  }
}

TEST(LauncherNodes, AFailureBeforeANodeIsLostIsTheFirst) {
  const TempDir folder;
  const std::string ready = (folder.path() / "ready").string();
  Nodes nodes({1, 1},
              "[ $RANK = 0 ] && { until [ -e " + ready +
                  " ]; do sleep 0.02; done; echo last words; exit 3; }; trap '' TERM; : >" + ready +
                  "; while :; do sleep 0.1; done",
              {"--shutdown_timeout=60"});
  ASSERT_TRUE(nodes[1].wait_for_error("stopping the ranks of this node"));
  std::this_thread::sleep_for(700ms);  // later than any consequence
  nodes[1].signal(SIGKILL);
  EXPECT_EQ(nodes[0].wait(), 3);
  EXPECT_THAT(nodes[0].err(), HasSubstr("exited with code 3"));
  EXPECT_THAT(nodes[0].err(), HasSubstr("  | last words\n"));
  EXPECT_THAT(nodes[0].err(), HasSubstr("its launcher was killed"));
}

TEST(LauncherNodes, AProgramThatOneNodeLacksEndsTheJob) {
  Nodes nodes({1, 1}, "[ $RANK = 1 ] && exec ./no-such-program; sleep 1000");
  EXPECT_EQ(nodes.wait(), (std::vector<int>{127, 127}));
  EXPECT_THAT(nodes[0].err(), HasSubstr("[launch] rank 1 on "));
}

// Found before anything starts, and told to all the same: the other would wait for this node.
TEST(LauncherNodes, AScriptThatOneNodeLacksEndsTheJob) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "sleep 1000", {});
  nodes.add(1, 2, 1, "", {"no-such-script.py"});
  EXPECT_EQ(nodes.wait(), (std::vector<int>{127, 127}));
  EXPECT_THAT(nodes[1].err(), HasSubstr("cannot start \"no-such-script.py\": No such file"));
  EXPECT_THAT(nodes[0].err(), HasSubstr("[launch] rank 1 on "));
  EXPECT_THAT(nodes[0].err(), ContainsRegex("this happened at [^\n]*no-such-script.py"));
}

TEST(LauncherNodes, ASignalWhileOneWaitsIsSaid) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "true", {});
  ASSERT_TRUE(nodes[0].wait_for_error("waiting for 1 of 2 nodes"));
  nodes[0].signal(SIGINT);
  EXPECT_EQ(nodes[0].wait(), 130);
  EXPECT_THAT(nodes[0].err(), HasSubstr("[launch] stopped by SIGINT; exit code 130\n"));
}

TEST(LauncherNodes, OneThatDoesNotComeIsSaidAndCountedOut) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "true", {"--timeout=0.5"});
  EXPECT_EQ(nodes[0].wait(), 1);
  EXPECT_THAT(nodes[0].err(),
              HasSubstr("[launch.nodes] not all nodes came: waiting for 1 of 2 nodes (there: "
                        "127.0.0.1)"));
  Nodes alone({}, "");
  alone.add(1, 2, 1, "true", {"--timeout=0.5"});
  EXPECT_EQ(alone[0].wait(), 1);
  EXPECT_THAT(alone[0].err(), HasSubstr("[launch.nodes] node 0 was not found at 127.0.0.1:"));
}

TEST(LauncherNodes, AllEndWithNodeZerosWordOnWhoDidNotCome) {
  Nodes nodes({}, "");
  nodes.add(0, 3, 1, "true", {"--timeout=1"});
  nodes.add(1, 3, 1, "true", {"--timeout=1"});
  EXPECT_EQ(nodes.wait(), (std::vector<int>{1, 1}));
  for (size_t node = 0; node < 2; ++node) {
    EXPECT_THAT(nodes[node].err(),
                HasSubstr("not all nodes came: waiting for 1 of 3 nodes (there: 127.0.0.1, "
                          "127.0.0.2), 1 s of 1 s"));
  }
}

TEST(LauncherNodes, TheWrongTokenIsRefusedAndHarmsNobody) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "echo fine", {});
  nodes.add(1, 2, 1, "echo fine", {}, "another");
  EXPECT_EQ(nodes[1].wait(), 1);
  EXPECT_THAT(nodes[1].err(), HasSubstr("token"));
  EXPECT_THAT(nodes[1].err(), Not(HasSubstr("another")));
  nodes.add(1, 2, 1, "echo fine", {});
  EXPECT_EQ(nodes[0].wait(), 0);
  EXPECT_EQ(nodes[2].wait(), 0);
}

TEST(LauncherNodes, ContradictionsAreToldToAll) {
  Nodes nodes({}, "");
  nodes.add(0, 2, 1, "true", {});
  nodes.add(1, 2, 1, "true", {"--nnodes=3"});
  const std::vector<int> codes = nodes.wait();
  EXPECT_EQ(codes, (std::vector<int>{1, 1}));
  for (size_t node = 0; node < 2; ++node) {
    EXPECT_THAT(nodes[node].err(), HasSubstr("was told of 2 nodes"));
    EXPECT_THAT(nodes[node].err(), HasSubstr(" of 3"));
  }
}

}  // namespace
}  // namespace argosy::test
