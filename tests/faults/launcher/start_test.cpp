// What ranks find when they start, and what is said when they cannot.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/strings.h"
#include "argosy/os/fd.h"
#include "argosy/os/socket.h"
#include "argosy/os/subprocess.h"
#include "argosy/os/topology.h"

#include "launched.h"
#include "tests/support/temp_dir.h"

namespace argosy::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::map<std::string, std::string> environment_of(const Launched& job, int rank) {
  std::map<std::string, std::string> map;
  for (const std::string& line : lines_of(job.out(), "[rank " + std::to_string(rank) + "] ")) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) {
      map[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  return map;
}

TEST(LauncherStart, EveryRankKnowsItsPlace) {
  Launched job(3, "env");
  ASSERT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(job.err(), "");
  EXPECT_THAT(job.all_err(), HasSubstr("[launch] | ranks       | 3 on "));
  std::set<std::string> endpoints;
  const auto first = environment_of(job, 0);
  for (int rank = 0; rank < 3; ++rank) {
    auto env = environment_of(job, rank);
    for (const char* name : {"RANK", "LOCAL_RANK", "ROLE_RANK", "PADDLE_TRAINER_ID"}) {
      EXPECT_EQ(env[name], std::to_string(rank)) << name;
    }
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "PADDLE_TRAINERS_NUM"}) {
      EXPECT_EQ(env[name], "3") << name;
    }
    for (const char* name : {"MASTER_ADDR",
                             "MASTER_PORT",
                             "ARGOSY_STORE",
                             "ARGOSY_TOKEN",
                             "ARGOSY_RUN_ID",
                             "PADDLE_TRAINER_ENDPOINTS"}) {
      EXPECT_EQ(env[name], first.at(name)) << name;
      EXPECT_NE(env[name], "") << name;
    }
    EXPECT_EQ(env["ARGOSY_PROGRESS"], "plain");
    EXPECT_EQ(env["ARGOSY_TOKEN"].size(), 32U);
    EXPECT_GE(strings::parse_int(env["OMP_NUM_THREADS"]).value_or(0), 1);
    endpoints.insert(env["PADDLE_CURRENT_ENDPOINT"]);
  }
  EXPECT_EQ(endpoints.size(), 3U);
}

TEST(LauncherStart, AGivenTokenIsPassedOnAndNeverShown) {
  Launched job({.args = {"--nproc_per_node=2",
                         "sh",
                         "-c",
                         "echo ${#ARGOSY_TOKEN}; exit 3",
                         "sh",
                         "--token",
                         "my-own-secret"},
                .env = {"ARGOSY_TOKEN=my-own-secret"}});
  EXPECT_EQ(job.wait(), 3);
  EXPECT_THAT(job.out(), HasSubstr("[rank 0] 13\n"));
  EXPECT_THAT(job.out() + job.err(), Not(HasSubstr("my-own-secret")));
}

TEST(LauncherStart, RankZeroReadsStandardInputTheOthersNothing) {
  Launched job(
      {.args = {"--nproc_per_node=2", "sh", "-c", "echo \"<$(cat)>\"; readlink /proc/$$/fd/0"},
       .with_input = true});
  ASSERT_TRUE(os::write_all(job.input().get(), "words").ok());
  job.input().close();
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(lines_of(job.out(), "[rank 0] "), ElementsAre("<words>", Not("/dev/null")));
  EXPECT_THAT(lines_of(job.out(), "[rank 1] "), ElementsAre("<>", "/dev/null"));
}

/// errno of binding the port as a program does that does not know it is taken.
int plain_bind(int port) {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

TEST(LauncherStart, PortsAreOwnedAndTwoLaunchersDoNotMeet) {
  const std::string script = "echo ports $MASTER_PORT ${PADDLE_TRAINER_ENDPOINTS##*:} end; cat";
  std::set<std::string> ports;
  std::vector<std::unique_ptr<Launched>> jobs;
  for (int i = 0; i < 2; ++i) {
    jobs.push_back(std::make_unique<Launched>(
        Launched::Options{.args = {"sh", "-c", script}, .with_input = true}));
  }
  for (const auto& job : jobs) {
    ASSERT_TRUE(job->wait_for_output(" end\n"));
    for (const std::string& word : strings::split(lines_of(job->out(), "[rank 0] ").at(0), ' ')) {
      if (const auto port = strings::parse_int(word)) {
        EXPECT_EQ(plain_bind(static_cast<int>(*port)), EADDRINUSE) << *port;
        ports.insert(word);
      }
    }
  }
  EXPECT_EQ(ports.size(), 4U);
  for (const auto& job : jobs) {
    job->input().close();
    EXPECT_EQ(job->wait(), 0);
  }
  for (const std::string& port : ports) {
    EXPECT_EQ(plain_bind(static_cast<int>(*strings::parse_int(port))), 0) << "not given back";
  }
}

TEST(LauncherStart, CountsItsRanksByWord) {
  Launched cpu({.args = {"--nproc_per_node", "cpu", "true"}});
  EXPECT_EQ(cpu.wait(), 0) << cpu.err();
  Launched automatic({.args = {"--nproc-per-node=auto", "sh", "-c", "echo $WORLD_SIZE"}});
  EXPECT_EQ(automatic.wait(), 0);
  EXPECT_GE(strings::parse_int(lines_of(automatic.out(), "[rank 0] ").at(0)).value_or(0), 1);
}

struct Refusal {
  std::vector<std::string> args;
  int code;
  std::string text;
};

TEST(LauncherStart, APythonScriptRunsUnderPython) {
  const TempDir folder;
  const std::string script = (folder.path() / "train.py").string();
  std::ofstream(script) << "import os, sys\nprint(os.environ['RANK'], sys.argv[1:])\n";
  if (!os::find_program("python3").ok()) {
    GTEST_SKIP() << "no python3 here";
  }
  Launched job({.args = {"--nproc_per_node=2", "--log_dir", "", script, "--lr", "1"}});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("[rank 1] 1 ['--lr', '1']\n"));
  Launched missing({.args = {"--nproc_per_node=2", "no/train.py"}});
  EXPECT_EQ(missing.wait(), 127);
  EXPECT_THAT(missing.err(), HasSubstr("cannot start \"no/train.py\": No such file"));
}

TEST(LauncherStart, DryRunShowsEverythingAndStartsNothing) {
  const TempDir folder;
  const std::string trace = (folder.path() / "started").string();
  Launched job({.args = {"--dry_run", "--nproc_per_node=2", "--env", "A=b", "touch", trace}});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.out(), testing::ContainsRegex("[|] program +[|] touch "));
  EXPECT_THAT(job.out(), HasSubstr("[launch] rank 1: RANK=1\n"));
  EXPECT_THAT(job.out(), HasSubstr("[launch] rank 0: A=b\n"));
  EXPECT_THAT(job.out(), HasSubstr("[launch] rank 0: GROUP_RANK=0\n"));
  EXPECT_THAT(job.out(), HasSubstr("ARGOSY_TOKEN=(hidden)"));
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST(LauncherStart, DryRunOfOneNodeOfSeveralClaimsNothingThatTheOthersDecide) {
  Launched job({.args = {"--dry_run",
                         "--nnodes=2",
                         "--node_rank=1",
                         "--master=192.0.2.1:29400",
                         "--host=127.0.0.1",
                         "--nproc_per_node=2",
                         "--env=WANDB_API_KEY=abc",
                         "true",
                         "--token=def"}});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("one of 2 nodes"));
  EXPECT_THAT(job.out(),
              HasSubstr("192.0.2.1:29400, where ranks, addresses and ports are settled"));
  EXPECT_THAT(job.out(), HasSubstr("WORLD_SIZE=(settled when the nodes meet)"));
  EXPECT_THAT(job.out(), HasSubstr("GROUP_WORLD_SIZE=2"));
  EXPECT_THAT(job.out(), HasSubstr("GROUP_RANK=1\n"));
  EXPECT_THAT(job.out(), HasSubstr("LOCAL_WORLD_SIZE=2"));
  EXPECT_THAT(job.out(), HasSubstr("WANDB_API_KEY=(hidden)"));
  EXPECT_THAT(job.out(), HasSubstr("true --token=(hidden)"));
  EXPECT_THAT(job.out(), Not(HasSubstr("abc")));
}

TEST(LauncherStart, SilentRanksLeaveNoFolder) {
  const TempDir folder;
  for (const char* program : {"true", "false", "sh -c 'kill -9 $$'"}) {
    Launched job({.shell = "cd " + folder.path().string() + " && exec \"$0\" launch " + program});
    (void)job.wait();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nor runs/";
  Launched loud({.shell = "cd " + folder.path().string() + " && exec \"$0\" launch echo a"});
  EXPECT_EQ(loud.wait(), 0);
  EXPECT_FALSE(std::filesystem::is_empty(folder.path() / "runs"));
}

TEST(LauncherStart, OnlyRanksThatThereAreCanBeShown) {
  Launched job({.args = {"--nproc_per_node=2", "--local_ranks_filter=0,2", "true"}});
  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), HasSubstr("there is no local rank 2: they are 0 to 1"));
}

TEST(LauncherStart, APortThatSomebodyHasIsWaitedFor) {
  const os::Listener taken = *os::Listener::listen_tcp("0.0.0.0", 0);
  const std::string option = "--master_port=" + std::to_string(taken.port());
  Launched in_vain({.args = {option, "true"}});
  EXPECT_EQ(in_vain.wait(), 1);
  EXPECT_THAT(in_vain.err(), HasSubstr("is in use; trying again for 5 s"));
  EXPECT_THAT(in_vain.err(), HasSubstr("Give another one, or none"));
  auto former = std::make_unique<Launched>(
      Launched::Options{.args = {"--nproc_per_node=1", "sh", "-c", "echo $MASTER_PORT; exec cat"},
                        .with_input = true});
  ASSERT_TRUE(former->wait_for_output("\n"));
  const std::string port = lines_of(former->out(), "[rank 0] ").at(0);
  Launched next({.args = {"--master_port=" + port, "sh", "-c", "echo got $MASTER_PORT"}});
  ASSERT_TRUE(next.wait_for_error("is in use"));
  former->input().close();
  EXPECT_EQ(next.wait(), 0);
  EXPECT_THAT(next.out(), HasSubstr("got " + port));
}

TEST(LauncherStart, BindsRanksToCores) {
  Launched job({.args = {"--nproc_per_node=1", "--cpu_bind=cores", "sh", "-c", "nproc"}});
  EXPECT_EQ(job.wait(), 0);
  const std::string all = job.out();
  if (os::affinity_cpus().size() < 2) {
    GTEST_SKIP() << "one CPU";
  }
  Launched two({.args = {"--nproc_per_node=2",
                         "--cpu_bind=cores",
                         "grep",
                         "Cpus_allowed_list",
                         "/proc/self/status"}});
  EXPECT_EQ(two.wait(), 0);
  const auto of = [&](const char* rank) { return lines_of(two.out(), rank).at(0); };
  EXPECT_NE(of("[rank 0] "), of("[rank 1] "));
}

TEST(LauncherStart, DryRunMissesWhatWouldNotStart) {
  Launched job({.args = {"--dry_run", "./no-such-program"}});
  EXPECT_EQ(job.wait(), 127);
  EXPECT_THAT(job.err(), HasSubstr("cannot start \"./no-such-program\""));
  Launched file({.args = {"--dry_run", "/etc/passwd"}});
  EXPECT_EQ(file.wait(), 126);
  Launched folder({.args = {"--dry_run", "/etc"}});
  EXPECT_EQ(folder.wait(), 126);
}

TEST(LauncherStart, DryRunShowsWhatIsSetAsItWillBe) {
  const TempDir folder;
  const std::string logs = (folder.path() / "logs").string();
  Launched job(
      {.args = {"--dry_run", "--log_dir", logs, "true"}, .env = {"OMP_NUM_THREADS=7", "OTHER=1"}});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.out(), HasSubstr("7 threads each"));
  EXPECT_THAT(job.out(), HasSubstr("| 7 (as found) "));
  EXPECT_THAT(job.out(), Not(HasSubstr("OMP_NUM_THREADS=")));
  EXPECT_THAT(job.out(), Not(HasSubstr("OTHER")));
  EXPECT_FALSE(std::filesystem::exists(logs));
}

TEST(LauncherStart, LogsOfHundredsOfRanksFitWithALowLimitOfOpenFiles) {
  const TempDir folder;
  Launched job({.shell = "ulimit -Hn 4096; ulimit -Sn 256; exec \"$0\" launch --log_dir " +
                         folder.path().string() +
                         " --nproc_per_node 80 sh -c 'echo limit $(ulimit -Sn)'"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(), Not(HasSubstr("is not written")));
  EXPECT_EQ(lines_of(job.out(), "[rank 79] ").front(), "limit 256");
  const std::filesystem::path run = *std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(run), {}), 81);  // and all.log
}

TEST(LauncherStart, WrongUsageIsExitCode2AndSaysWhy) {
  for (const Refusal& refusal : {
           Refusal{{"--nproc_per_node", "0", "true"}, 2, "expected a number from 1"},
           Refusal{{"--nproc_per_node", "abc", "true"}, 2, "got \"abc\""},
           Refusal{{"--nproc-per-nod", "2", "true"}, 2, "Did you mean --nproc_per_node?"},
           Refusal{{}, 2, "no program given"},
           Refusal{{"--log_dir", "/proc/nowhere", "true"}, 2, "Choose another --log_dir"},
           Refusal{{"--nproc_per_node", "4", "no-such-program"}, 127, "Check the spelling"},
           Refusal{{"--nproc_per_node", "4", "/etc/passwd"}, 126, "chmod +x"},
       }) {
    Launched job({.args = refusal.args});
    EXPECT_EQ(job.wait(), refusal.code) << job.err();
    EXPECT_THAT(job.err(), HasSubstr(refusal.text));
    EXPECT_EQ(std::ranges::count(job.err(), '\n'), 1) << job.err();
    EXPECT_EQ(job.out(), "");
    EXPECT_THAT(job.survivors(), IsEmpty());
  }
}

}  // namespace
}  // namespace argosy::test
