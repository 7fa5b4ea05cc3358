#include "argosy/launch/options/program.h"

#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace argosy::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ProgramTest : public testing::Test {
 protected:
  Program find(const LaunchOptions& options, const std::string& launcher = "/usr/bin/argosy") {
    const auto lookup = [&](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
    return find_command(options, lookup, launcher);
  }
  /// Makes a virtual environment as far as a launcher sees it, and returns its folder.
  std::string environment(const std::string& name) {
    const std::filesystem::path folder = folder_.path() / name;
    std::filesystem::create_directories(folder / "bin");
    file(name + "/pyvenv.cfg");
    std::filesystem::permissions(file(name + "/bin/python"), std::filesystem::perms::owner_all);
    return folder.string();
  }
  std::string file(const std::string& name) {
    std::string path = (folder_.path() / name).string();
    std::ofstream(path) << "";
    return path;
  }

  test::TempDir folder_;
  std::map<std::string, std::string> variables_{{"PYTHON_EXEC", "/opt/python"}};
};

TEST_F(ProgramTest, AnythingIsExecutedAsItStands) {
  EXPECT_THAT(find({.command = {"./train", "a.py"}}).args, ElementsAre("./train", "a.py"));
}

TEST_F(ProgramTest, ScriptsAndModulesRunUnderPython) {
  const std::string script = file("train.py");
  EXPECT_THAT(find({.command = {script, "--lr", "1"}}).args,
              ElementsAre("/opt/python", "-u", script, "--lr", "1"));
  EXPECT_THAT(find({.module = true, .command = {"pkg.train", "x"}}).args,
              ElementsAre("/opt/python", "-u", "-m", "pkg.train", "x"));
  EXPECT_THAT(find({.no_python = true, .command = {script}}).args, ElementsAre(script));
}

TEST_F(ProgramTest, TorchDistributedLaunchPassesTheLocalRankFirst) {
  LaunchOptions options{.pass_local_rank = true, .command = {"./train", "--lr", "1"}};
  EXPECT_THAT(find(options).for_rank(3), ElementsAre("./train", "--local_rank=3", "--lr", "1"));
  options.command = {file("a.py")};
  EXPECT_THAT(find(options).for_rank(0),
              ElementsAre("/opt/python", "-u", options.command[0], "--local_rank=0"));
  options.pass_local_rank = false;
  EXPECT_THAT(find(options).for_rank(0), ElementsAre("/opt/python", "-u", options.command[0]));
}

TEST_F(ProgramTest, AMissingScriptIsNamedOnceByTheLauncher) {
  const Program program = find({.command = {"no/train.py"}});
  ASSERT_TRUE(program.error);
  EXPECT_EQ(program.error->exit_code, 127);
  EXPECT_THAT(program.error->text, HasSubstr("cannot start \"no/train.py\": No such file"));
}

TEST(MisplacedOption, IsOneThatStandsAfterTheProgramsName) {
  EXPECT_EQ(misplaced_option({"./train", "--lr", "1", "--nproc-per-node=2"}), "--nproc-per-node=2");
  EXPECT_EQ(misplaced_option({"./train", "--nnodes", "2"}), "--nnodes");
  EXPECT_EQ(misplaced_option({"--nnodes", "-", "--", "--log_dir", "--nnodes2"}), "");
}

TEST_F(ProgramTest, AVirtualEnvironmentsPythonGoesBeforePath) {
  const std::string active = environment("active");
  variables_ = {{"VIRTUAL_ENV", active}};
  EXPECT_EQ(find({.command = {file("a.py")}}).args.front(), active + "/bin/python");
}

TEST_F(ProgramTest, TheLaunchersOwnEnvironmentGoesBeforeTheOneThatIsActive) {
  const std::string own = environment("own");
  variables_ = {{"VIRTUAL_ENV", environment("active")}};
  const LaunchOptions options{.command = {file("a.py")}};
  EXPECT_EQ(find(options, own + "/bin/argosy").args.front(), own + "/bin/python");
  std::filesystem::remove(own + "/pyvenv.cfg");  // as Debian's /usr
  EXPECT_EQ(find(options, own + "/bin/argosy").args.front(),
            variables_["VIRTUAL_ENV"] + "/bin/python");
}

}  // namespace
}  // namespace argosy::launch
