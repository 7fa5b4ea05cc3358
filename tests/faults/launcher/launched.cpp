#include "launched.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/base/strings.h"

namespace argosy::test {
namespace {

using namespace std::chrono_literals;

/// Generous: the machine may be busy. Only a hang reaches it.
Deadline patience() {
  return Deadline::after(60s);
}

std::string next_mark() {
  static std::atomic<int> count{0};
  return fmt::format("ARGOSY_TEST_MARK={}-{}", ::getpid(), ++count);
}

std::vector<std::string> shell_args(int ranks,
                                    const std::string& script,
                                    std::vector<std::string> args) {
  args.insert(args.begin(), fmt::format("--nproc_per_node={}", ranks));
  args.insert(args.end(), {"/bin/sh", "-c", script});
  return args;
}

size_t count(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++times;
  }
  return times;
}

}  // namespace

Launched::Launched(int ranks, const std::string& script, std::vector<std::string> more_options)
    : Launched(Options{.args = shell_args(ranks, script, std::move(more_options))}) {}

Launched::Launched(Options options) : mark_(next_mark()) {
  options.args.insert(options.args.begin(), {ARGOSY_COMMAND, "launch"});
  if (!options.shell.empty()) {
    options.args = {"bash", "-c", options.shell, ARGOSY_COMMAND};
  }
  std::vector<std::string> env = os::environ_list();
  env.insert(env.begin(), options.env.begin(), options.env.end());  // the first one counts
  env.push_back(mark_);
  os::Pipe in = *os::make_pipe();
  os::Pipe out = *os::make_pipe();
  os::Pipe err = *os::make_pipe();
  process_.emplace(*os::Subprocess::spawn(
      {.args = options.args,
       .env = env,
       .stdin_fd = options.with_input ? in.read.get() : -1,
       .stdout_fd = options.terminal >= 0 ? options.terminal : out.write.get(),
       .stderr_fd = err.write.get()}));
  if (options.with_input) {
    input_ = std::move(in.write);
  }
  out_.fd = std::move(out.read);
  err_.fd = std::move(err.read);
}

Launched::~Launched() {
  signal(SIGKILL);
  for (const pid_t pid : marked()) {
    ::kill(pid, SIGKILL);
  }
}

const std::string& Launched::err() const {
  err_without_table_.clear();
  std::istringstream lines(err_.text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("[launch] +-") && !line.starts_with("[launch] | ")) {
      err_without_table_ += line + (lines.eof() ? "" : "\n");
    }
  }
  return err_without_table_;
}

bool Launched::read_more() {
  std::vector<pollfd> polls;
  for (const Stream* stream : {&out_, &err_}) {
    if (stream->fd) {
      polls.push_back({stream->fd.get(), POLLIN, 0});
    }
  }
  if (polls.empty()) {
    return false;
  }
  if (::poll(polls.data(), polls.size(), static_cast<int>(patience().remaining().count())) == 0) {
    ADD_FAILURE() << "no word for a minute; so far:\n" << out_.text << "\n" << err_.text;
    return false;
  }
  for (Stream* stream : {&out_, &err_}) {
    const bool ready = std::ranges::any_of(polls, [&](const pollfd& entry) {
      return entry.fd == stream->fd.get() && entry.revents != 0;
    });
    if (!ready) {
      continue;
    }
    std::array<char, 65536> chunk{};
    const ssize_t got = ::read(stream->fd.get(), chunk.data(), chunk.size());
    if (got > 0) {
      stream->text.append(chunk.data(), static_cast<size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      stream->fd.close();
    }
  }
  return true;
}

int Launched::wait() {
  while (read_more()) {
  }
  const auto exit = process_->wait(patience());
  if (!exit.ok() || !*exit) {
    ADD_FAILURE() << "argosy launch does not end; so far:\n" << out_.text << "\n" << err_.text;
    return -1;
  }
  return (*exit)->shell_code();
}

bool Launched::wait_for(Stream& stream, const std::string& text, int times) {
  while (count(stream.text, text) < static_cast<size_t>(times)) {
    if (!read_more()) {
      ADD_FAILURE() << "\"" << text << "\" did not come; out:\n" << out() << "\nerr:\n" << err();
      return false;
    }
  }
  return true;
}

bool Launched::wait_for_output(const std::string& text, int times) {
  return wait_for(out_, text, times);
}

bool Launched::wait_for_error(const std::string& text) {
  return wait_for(err_, text, 1);
}

std::vector<pid_t> Launched::marked() const {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto pid = strings::parse_int(entry.path().filename().string());
    const Result<std::string> environment = os::read_file(entry.path() / "environ");
    // A zombie's environment is empty.
    if (pid && environment.ok() && environment->find(mark_) != std::string::npos) {
      pids.push_back(static_cast<pid_t>(*pid));
    }
  }
  return pids;
}

std::vector<pid_t> Launched::children() const {
  const Result<std::string> list = os::read_file(fmt::format("/proc/{0}/task/{0}/children", pid()));
  std::vector<pid_t> pids;
  for (const std::string& word : strings::split(list.ok() ? strings::trim(*list) : "", ' ')) {
    if (const auto number = strings::parse_int(word)) {
      pids.push_back(static_cast<pid_t>(*number));
    }
  }
  return pids;
}

pid_t Launched::child_named(const std::string& name) const {
  for (const pid_t child : children()) {
    const Result<std::string> command = os::read_file(fmt::format("/proc/{}/comm", child));
    if (command.ok() && strings::trim(*command) == name) {
      return child;
    }
  }
  return 0;
}

bool Launched::wait_for_zombies(int children) {
  const Deadline deadline = Deadline::after(30s);
  const auto zombies = [&] {
    return std::ranges::count_if(this->children(), [](pid_t pid) { return state_of(pid) == 'Z'; });
  };
  while (zombies() < children && !deadline.expired()) {
    std::this_thread::sleep_for(1ms);  // a stranger's state has no event to wait for
  }
  EXPECT_GE(zombies(), children);
  return zombies() >= children;
}

char state_of(pid_t pid) {
  const Result<std::string> stat = os::read_file("/proc/" + std::to_string(pid) + "/stat");
  return stat.ok() ? stat->at(stat->rfind(')') + 2) : '?';
}

std::vector<std::string> Launched::survivors() {
  const Deadline deadline = Deadline::after(20s);
  std::vector<pid_t> there;
  // A process that executes its program shows no environment for a moment: one look that finds
  // nobody proves nothing.
  for (int empty = 0; empty < 3 && !deadline.expired();) {
    there = marked();
    empty = there.empty() ? empty + 1 : 0;
    std::this_thread::sleep_for(2ms);  // the end of a stranger's process has no event to wait for
  }
  std::vector<std::string> found;
  for (const pid_t pid : there) {
    const Result<std::string> command = os::read_file(fmt::format("/proc/{}/cmdline", pid));
    found.push_back(fmt::format("{} {}", pid, command.ok() ? *command : "?"));
  }
  return found;
}

std::vector<std::string> lines_of(const std::string& text, const std::string& prefix) {
  std::vector<std::string> found;
  for (const std::string& line : strings::split(text, '\n')) {
    if (line.starts_with(prefix)) {
      found.push_back(line.substr(prefix.size()));
    }
  }
  return found;
}

}  // namespace argosy::test
