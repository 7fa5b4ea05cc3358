#include "argosy/launch/adopted.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <vector>

#include "argosy/base/strings.h"
#include "argosy/os/children.h"
#include "argosy/os/fd.h"

namespace argosy::launch {
namespace {

/// A zombie is one too. Numbers may be of another counting than ours (see os::children()) or come
/// again; only the kernel knows.
bool is_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool has_variable(pid_t pid, const std::string& entry) {
  const Result<std::string> environment = os::read_file(fmt::format("/proc/{}/environ", pid));
  return environment.ok() && std::ranges::count(strings::split(*environment, '\0'), entry) > 0;
}

}  // namespace

Adopted::Adopted() {
  const Result<std::vector<pid_t>> all = os::children();
  if (all.ok()) {
    strangers_.insert(all->begin(), all->end());
    strangers_came_ = !strangers_.empty();
  }
}

bool Adopted::strange(pid_t pid) const {
  return strangers_.contains(pid) ||
         (strangers_came_ && !mark_.empty() && !has_variable(pid, mark_));
}

std::vector<pid_t> Adopted::list(const Others& others) const {
  Result<std::vector<pid_t>> all = os::children();
  if (!all.ok()) {
    return {};
  }
  std::erase_if(*all, [&](pid_t pid) { return others(pid) || !is_child(pid) || strange(pid); });
  return *std::move(all);
}

void Adopted::reap(const Others& others) {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
        others(info.si_pid)) {
      return;  // another's comes first: its owner reaps it before we are called again
    }
    ::waitpid(info.si_pid, nullptr, WNOHANG);
    told_.erase(info.si_pid);
    strangers_.erase(info.si_pid);  // the number may come again
  }
}

void Adopted::signal(int signal, const Others& others) {
  for (const pid_t pid : list(others)) {
    int& last = told_[pid];
    if (last != signal) {
      last = signal;
      ::kill(pid, signal);  // not reaped by us, so the number is still its own
    }
  }
}

bool Adopted::alive(const Others& others) const {
  return !list(others).empty();
}

}  // namespace argosy::launch
