#include "argosy/os/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/signals.h"

namespace argosy::os {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Deadline soon() {
  return Deadline::after(20s);
}

/// Runs a shell script to its end; its standard output and how it ended.
std::pair<std::string, Exit> run(const std::string& script, SubprocessOptions options = {}) {
  Pipe out = *make_pipe();
  options.args = {"/bin/sh", "-c", script};
  options.stdout_fd = out.write.get();
  Result<Subprocess> child = Subprocess::spawn(options);
  EXPECT_TRUE(child.ok());
  out.write.close();
  EXPECT_TRUE(set_nonblocking(out.read.get()).ok());
  const Result<std::string> text = read_to_end(out.read.get(), 1 << 20, soon());
  EXPECT_TRUE(text.ok());
  const Result<std::optional<Exit>> exit = child->wait(soon());
  EXPECT_TRUE(exit.ok() && *exit);
  return {*text, **exit};
}

TEST(Subprocess, RunsWithArgumentsEnvironmentAndStreams) {
  Pipe in = *make_pipe();
  ASSERT_TRUE(write_all(in.write.get(), "from stdin\n").ok());
  in.write.close();
  const auto [text, exit] =
      run("echo \"$GREETING\"; cat; exit 7", {.env = {"GREETING=hi"}, .stdin_fd = in.read.get()});
  EXPECT_EQ(text, "hi\nfrom stdin\n");
  EXPECT_EQ(exit.code, 7);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(exit.shell_code(), 7);
}

TEST(Subprocess, StandardInputIsEmptyByDefault) {
  EXPECT_EQ(run("cat; echo end").first, "end\n");
}

TEST(Subprocess, TellsASignalFromAnExitCode) {
  const Exit exit = run("kill -9 $$").second;
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(exit.shell_code(), 137);
  EXPECT_FALSE(exit.ok());
}

TEST(Subprocess, StartsWithDefaultSignalsWhateverWeBlockOrIgnore) {
  ignore_write_signals();
  const SignalFd signals = *SignalFd::create({SIGTERM, SIGUSR1});
  const std::string text = run("grep -E 'Sig(Blk|Ign)' /proc/self/status").first;
  EXPECT_NE(text.find("SigBlk:\t0000000000000000\n"), std::string::npos) << text;
  const size_t ignored = text.find("SigIgn:\t");
  ASSERT_NE(ignored, std::string::npos) << text;
  // Signals 32 and 33 are the C library's own: sigaction() refuses them, and a parent (make, with
  // its posix_spawn) may leave them ignored.
  constexpr uint64_t kReserved = uint64_t{3} << 31;
  EXPECT_EQ(std::stoull(text.substr(ignored + 8), nullptr, 16) & ~kReserved, 0U) << text;
}

TEST(Subprocess, InheritsNoneOfOurDescriptors) {
  const UniqueFd ours = *open_file("/dev/null", O_RDONLY);
  const std::string number = std::to_string(ours.get());
  EXPECT_EQ(run("[ -e /proc/self/fd/" + number + " ] && echo inherited").first, "");
}

TEST(Subprocess, WorksWithStandardStreamsClosed) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(0);
    ::close(1);
    ::close(2);
    Result<Subprocess> child = Subprocess::spawn({.args = {"/bin/sh", "-c", "exit 3"}});
    ::_exit(child.ok() ? (*child->wait(soon()))->code : 99);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(Subprocess, LeadsItsOwnGroupAndSaysItsPid) {
  Pipe pids = *make_pipe();
  Result<Subprocess> child =
      Subprocess::spawn({.args = {"/bin/sleep", "100"}, .pid_fd = pids.write.get()});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(::getpgid(child->pid()), child->pid());
  int32_t said = 0;
  ASSERT_EQ(*read_all(pids.read.get(), std::as_writable_bytes(std::span(&said, 1)), soon()), 4U);
  EXPECT_EQ(said, child->pid());
  EXPECT_TRUE(child->running());
  EXPECT_FALSE((*child->try_wait()).has_value());
}

TEST(Subprocess, RunsThoughNobodyReadsItsPid) {
  ignore_write_signals();
  Pipe pids = *make_pipe();
  pids.read.close();
  EXPECT_EQ(run("exit 7", {.pid_fd = pids.write.get()}).second.shell_code(), 7);
}

TEST(Subprocess, IsSignalledAndReaped) {
  Result<Subprocess> child = Subprocess::spawn({.args = {"sleep", "100"}});
  ASSERT_TRUE(child.ok());
  EXPECT_FALSE(*child->wait(Deadline::after(1ms)));
  ASSERT_TRUE(child->signal(SIGTERM).ok());
  EXPECT_EQ((*child->wait(soon()))->signal, SIGTERM);
  EXPECT_EQ((*child->try_wait())->signal, SIGTERM);
  EXPECT_TRUE(child->signal(SIGTERM).ok());  // gone, and that is fine
  EXPECT_EQ(::waitpid(child->pid(), nullptr, WNOHANG), -1);
}

TEST(Subprocess, AForgottenChildIsKilled) {
  pid_t pid = 0;
  { pid = Subprocess::spawn({.args = {"sleep", "100"}})->pid(); }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Subprocess, DiesWithItsParent) {
  Pipe alive = *make_pipe();  // the sleeper holds the write end as its standard output
  const pid_t pid = ::fork();
  if (pid == 0) {
    Result<Subprocess> child =
        Subprocess::spawn({.args = {"sleep", "100"}, .stdout_fd = alive.write.get()});
    ::kill(::getpid(), SIGKILL);
  }
  alive.write.close();
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  ASSERT_TRUE(set_nonblocking(alive.read.get()).ok());
  EXPECT_TRUE(
      read_to_end(alive.read.get(), 16, soon()).ok());  // the end comes: the sleeper is gone
}

TEST(Subprocess, ReportsWhatExecSaid) {
  const Result<Subprocess> missing = Subprocess::spawn({.args = {"no-such-program"}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.failure().error_number, ENOENT);
  EXPECT_THAT(missing.failure().what, HasSubstr("find \"no-such-program\" in PATH"));

  const Result<Subprocess> no_file = Subprocess::spawn({.args = {"/nowhere/x"}});
  ASSERT_FALSE(no_file.ok());
  EXPECT_EQ(no_file.failure().what, "execute /nowhere/x: No such file or directory (ENOENT)");

  const Result<Subprocess> folder = Subprocess::spawn({.args = {"/tmp"}});
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.failure().error_number, EACCES);
}

TEST(Subprocess, AFileThatIsNoProgramIsNotGivenToAShell) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("argosy-os-" + std::to_string(::getpid()));
  std::ofstream(path) << "echo hello\n";
  ::chmod(path.c_str(), 0755);
  const Result<Subprocess> child = Subprocess::spawn({.args = {path}});
  std::filesystem::remove(path);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.failure().error_number, ENOEXEC);
}

TEST(Environment, IsListed) {
  ASSERT_EQ(::setenv("ARGOSY_OS_TEST", "a=b", 1), 0);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_THAT(environ_list(), testing::Contains("ARGOSY_OS_TEST=a=b"));
}

}  // namespace
}  // namespace argosy::os
