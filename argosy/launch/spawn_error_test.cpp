#include "argosy/launch/spawn_error.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/subprocess.h"

namespace argosy::launch {
namespace {

using testing::HasSubstr;

/// What the real spawn says about `program`, explained.
SpawnError attempt(const std::string& program) {
  const Result<os::Subprocess> child = os::Subprocess::spawn({.args = {program}});
  return child.ok() ? SpawnError{"started", 0} : explain_spawn(program, child.failure());
}

class SpawnErrors : public testing::Test {
 protected:
  SpawnErrors()
      : folder_(std::filesystem::temp_directory_path() /
                ("argosy-spawn-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~SpawnErrors() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text, mode_t mode) {
    std::string path = folder_ / name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(SpawnErrors, NotFoundIs127) {
  const SpawnError error = attempt("no-such-program");
  EXPECT_EQ(error.exit_code, 127);
  EXPECT_EQ(
      error.text,
      "[launch] cannot start \"no-such-program\": find \"no-such-program\" in PATH: No such "
      "file or directory (ENOENT). Check the spelling. See docs/guides/errors.md#cannot-start\n");
  EXPECT_EQ(attempt(folder_ / "nothing").exit_code, 127);
  EXPECT_THAT(attempt("LR=0.1").text, HasSubstr("given as --env LR=0.1."));
  EXPECT_THAT(attempt("./lr=0.1/train").text, HasSubstr("Check the spelling."));
  EXPECT_EQ(attempt(file("plain", "", 0644) + "/below").exit_code, 127);
}

TEST_F(SpawnErrors, AProgramInThisFolderNeedsItsPath) {
  const std::filesystem::path before = std::filesystem::current_path();
  file("argosy-here", "#!/bin/sh\n", 0755);
  std::filesystem::current_path(folder_);
  const SpawnError error = attempt("argosy-here");
  std::filesystem::current_path(before);
  EXPECT_THAT(error.text, HasSubstr("There is one in this folder: write ./argosy-here"));
}

TEST_F(SpawnErrors, NotExecutableIs126) {
  const SpawnError plain = attempt(file("plain", "x", 0644));
  EXPECT_EQ(plain.exit_code, 126);
  EXPECT_THAT(plain.text, HasSubstr("chmod +x"));
  EXPECT_THAT(attempt(file("train.py", "", 0644)).text, HasSubstr("python3 "));
  EXPECT_THAT(attempt(folder_).text, HasSubstr("It is a folder."));
  const SpawnError text = attempt(file("text", "echo hello\n", 0755));
  EXPECT_EQ(text.exit_code, 126);
  EXPECT_THAT(text.text, HasSubstr("#! line"));
}

TEST_F(SpawnErrors, AMissingInterpreterIsNamedAsSuch) {
  const SpawnError error = attempt(file("script", "#!/nowhere/python\n", 0755));
  EXPECT_EQ(error.exit_code, 127);
  EXPECT_THAT(error.text, HasSubstr("its interpreter (the #! line)"));
}

}  // namespace
}  // namespace argosy::launch
