#include "argosy/launch/adopted.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <vector>

#include "argosy/os/children.h"

namespace argosy::launch {
namespace {

std::vector<pid_t> adopted(const Adopted::Others& others) {
  Result<std::vector<pid_t>> all = os::children();
  if (!all.ok()) {
    return {};
  }
  std::erase_if(*all, others);
  return *std::move(all);
}

}  // namespace

void Adopted::reap(const Others& others) {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
        others(info.si_pid)) {
      return;  // another's comes first: its owner reaps it before we are called again
    }
    ::waitpid(info.si_pid, nullptr, WNOHANG);
    told_.erase(info.si_pid);
  }
}

void Adopted::signal(int signal, const Others& others) {
  for (const pid_t pid : adopted(others)) {
    int& last = told_[pid];
    if (last != signal) {
      last = signal;
      ::kill(pid, signal);  // not reaped by us, so the number is still its own
    }
  }
}

bool Adopted::alive(const Others& others) const {
  return !adopted(others).empty();
}

}  // namespace argosy::launch
