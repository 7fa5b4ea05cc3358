#include "argosy/runs/run_config.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/runs/process_start.h"
#include "argosy/runs/run_folder.h"

#include "tests/support/temp_dir.h"

namespace argosy::runs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct RunConfigTest : ::testing::Test {
  test::TempDir temp{};
  std::string folder = (temp.path() / "runs").string();
  RunConfig config = RunConfig::capture({.name = "a", .command = {"train", "--lr", "0.1"}});

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(folder + "/" + name);
    std::ofstream(folder + "/" + name + "/run.json") << text;
  }
};

TEST_F(RunConfigTest, ComesBackAsItWas) {
  config.seed = 18446744073709551615U;
  config.ranks = 4;
  config.options = {{"z", 1}, {"a", {{"b", 0.1}, {"c", {1, 2}}}}};
  config.versions["libtorch"] = "1.13.1";
  config.interruptions = {{.state = RunState::kStopped,
                           .message = "SIGTERM",
                           .step = 40,
                           .resumed = std::chrono::system_clock::now()}};
  config.end(RunState::kFailed, "loss is NaN", 3);
  write_run_config(folder + "/a", config);
  const RunConfig back = read_run_config(folder + "/a");
  EXPECT_EQ(to_json(back), to_json(config));
  EXPECT_EQ(back.seed, config.seed);
  EXPECT_EQ(back.exit_code, 3);
  EXPECT_EQ(back.state, RunState::kFailed);
  EXPECT_EQ(back.options.dump(), R"({"z":1,"a":{"b":0.1,"c":[1,2]}})");
  EXPECT_EQ(std::chrono::floor<std::chrono::milliseconds>(config.started), back.started);
  EXPECT_NEAR(back.duration().count(), config.duration().count(), 0.002);
}

TEST_F(RunConfigTest, CapturesWhereItRuns) {
  EXPECT_THAT(config.host.system, HasSubstr("Linux"));
  EXPECT_GT(config.host.memory_bytes, 0);
  EXPECT_GE(config.host.cores, 1);
  EXPECT_EQ(config.host.pid, getpid());
  EXPECT_TRUE(config.versions.contains("argosy"));
  EXPECT_FALSE(config.folder.empty());
  EXPECT_EQ(config.observed_state(), RunState::kRunning);
  EXPECT_THAT(RunConfig::capture({}).command.at(0), HasSubstr("runs_test"));
}

TEST_F(RunConfigTest, KeepsNoSecret) {
  // NOLINTBEGIN(concurrency-mt-unsafe): one thread
  ASSERT_EQ(setenv("ARGOSY_TOKEN", "hunter2", 1), 0);
  ASSERT_EQ(setenv("SLURM_JWT", "hunter2", 1), 0);
  ASSERT_EQ(setenv("TORCH_INDEX", "https://user:hunter2@host/", 1), 0);
  ASSERT_EQ(setenv("OMP_NUM_THREADS", "3", 1), 0);
  const RunConfig captured = RunConfig::capture({.command = {"train",
                                                             "--api-key",
                                                             "hunter2",
                                                             "--wandb-key=hunter2",
                                                             "--data",
                                                             "http://user:hunter2@host/a",
                                                             "--lr",
                                                             "1"}});
  ASSERT_EQ(unsetenv("ARGOSY_TOKEN"), 0);
  ASSERT_EQ(unsetenv("SLURM_JWT"), 0);
  ASSERT_EQ(unsetenv("TORCH_INDEX"), 0);
  ASSERT_EQ(unsetenv("OMP_NUM_THREADS"), 0);
  // NOLINTEND(concurrency-mt-unsafe)
  EXPECT_EQ(captured.environment.at("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(captured.environment.at("ARGOSY_TOKEN"), "(hidden)");
  EXPECT_EQ(captured.environment.at("TORCH_INDEX"), "https://(hidden)@host/");
  EXPECT_FALSE(captured.environment.contains("HOME"));
  EXPECT_THAT(to_json(captured).dump(), ::testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(captured.command,
              ElementsAre("train",
                          "--api-key",
                          "(hidden)",
                          "--wandb-key=(hidden)",
                          "--data",
                          "http://(hidden)@host/a",
                          "--lr",
                          "1"));
}

TEST_F(RunConfigTest, AProcessThatEndedUnaskedIsGone) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  config.host.pid = child;
  config.host.pid_start = process_start(child).value_or(0);
  EXPECT_EQ(config.observed_state(), RunState::kRunning);
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(config.observed_state(), RunState::kKilled);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(RunConfigTest, ARunWhoseProcessIsGoneWasKilled) {
  config.host.pid_start -= 1;  // another process has the number now
  EXPECT_EQ(config.observed_state(), RunState::kKilled);
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  config.host.pid = child;
  EXPECT_EQ(config.observed_state(), RunState::kKilled);
  config.host.name = "elsewhere";
  EXPECT_EQ(config.observed_state(), RunState::kRunning);
  config.state = RunState::kFinished;
  EXPECT_EQ(config.observed_state(), RunState::kFinished);
}

TEST_F(RunConfigTest, BadFilesAreToldWithTheirPathAndField) {
  const auto told = [&](const std::string& text) -> std::string {
    write("bad", text);
    try {
      (void)read_run_config(folder + "/bad");
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("[runs.config] " + folder + "/bad/run.json: "));
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(told("{\"name\":"), HasSubstr("torn"));
  EXPECT_THAT(told("[1]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(told(R"({"format":2})"), HasSubstr("newer"));
  EXPECT_THAT(told(R"({"name":3})"), HasSubstr("\"name\""));
  EXPECT_THAT(told(R"({"state":"happy"})"), HasSubstr("happy"));
  EXPECT_THAT(told(R"({"started":"yesterday"})"), HasSubstr("yesterday"));
  EXPECT_THAT(told(R"({"host":7})"), HasSubstr("bad/run.json"));
  EXPECT_THAT(told(R"({"ranks":"two"})"), HasSubstr("\"ranks\""));
  EXPECT_THROW((void)read_run_config(folder + "/none"), DataError);
  EXPECT_EQ(told("{}"), "nothing");
}

TEST_F(RunConfigTest, RunsAreListedNewestFirstAndFoundByName) {
  for (const char* name : {"one", "sweep/two", "three"}) {
    config.started += std::chrono::seconds(1);
    write_run_config(folder + "/" + name, config);
  }
  write("broken", "{");
  write("one/inside", "{}");  // of a run, not looked into
  const FoundRuns found = list_runs(folder);
  std::vector<std::string> names;
  for (const runs::Run& run : found.runs) {
    names.push_back(run.name);
  }
  EXPECT_THAT(names, ElementsAre("three", "sweep/two", "one"));
  EXPECT_THAT(found.broken, ElementsAre(HasSubstr("broken/run.json")));
  EXPECT_EQ(find_run("sweep/two", folder).folder, folder + "/sweep/two");
  EXPECT_EQ(find_run(folder + "/one", "nowhere").name, folder + "/one");
  try {
    (void)find_run("thre", folder);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Did you mean three?"));
  }
  EXPECT_THROW((void)list_runs(folder + "/none"), DataError);
}

TEST_F(RunConfigTest, RankFilesAreReadInTheOrderOfRanks) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"rank10.json", R"({"rank":10})"},
                                                        {"rank2.json", R"({"rank":2})"},
                                                        {"rank3.json", "{\"ra"},
                                                        {"rank-1.json", "{}"},
                                                        {"ranking.json", "{}"}}) {
    std::ofstream(folder + "/" + name) << text;
  }
  const auto ranks = read_rank_files(folder);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].at("rank"), 2);
  EXPECT_EQ(ranks[1].at("rank"), 10);
  write_rank_file(folder, 2, {{"rank", 2}, {"host", "node\xff"}});  // replaced
  EXPECT_EQ(read_rank_files(folder).at(0).at("host"), "node\xEF\xBF\xBD");
}

}  // namespace
}  // namespace argosy::runs
