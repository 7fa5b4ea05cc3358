#include "argosy/launch/leftovers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "argosy/base/catalogue.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/os/children.h"
#include "argosy/os/fd.h"

namespace argosy::launch {
namespace {

constexpr size_t kMostNamed = 20;  // of the processes that are left behind by one

/// "pid 40 (sh, of user 0)"; "?" for bytes that would move a terminal's cursor.
std::string name_of(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  struct stat status {};
  const bool known = ::stat(folder.c_str(), &status) == 0;
  const Result<std::string> comm = os::read_file(folder + "/comm");
  const std::string name = comm.ok() ? text::printable(strings::trim(*comm)) : "?";
  return known ? fmt::format("pid {} ({}, of user {})", pid, name, status.st_uid)
               : fmt::format("pid {}", pid);
}

}  // namespace

/// A child with an owner of its own: not to be reaped as an orphan.
bool Leftovers::owned(pid_t pid) const {
  return (pid == session_.guard.pid() && !session_.guard_lost) ||
         std::ranges::any_of(ranks_,
                             [&](const Rank& rank) { return rank.running() && rank.pid() == pid; });
}

/// In a rank's group, which is signalled as a whole.
bool Leftovers::in_group(pid_t pid) const {
  const pid_t group = ::getpgid(pid);
  return std::ranges::any_of(with_group_, [&](const Rank* rank) { return rank->pid() == group; });
}

Adopted::Others Leftovers::owned_or_in_group() const {
  return [this](pid_t pid) { return owned(pid) || in_group(pid); };
}

void Leftovers::look() {
  std::erase_if(with_group_, [&](Rank* rank) {
    const bool gone = !rank->group_alive();
    if (gone) {
      session_.guard.forget(rank->pid());
    }
    return gone;
  });
  any_ = !with_group_.empty() || std::ranges::any_of(ranks_, &Rank::running) ||
         session_.adopted.alive(owned_or_in_group());
}

void Leftovers::signal_orphans(int signal) {
  session_.adopted.signal(signal, owned_or_in_group());
}

void Leftovers::suspend_or_resume(int signal) const {
  for (const Rank* rank : with_group_) {
    rank->suspend_or_resume(signal);
  }
}

void Leftovers::reap() {
  if (!session_.guard_lost && session_.guard.lost()) {
    session_.guard_lost = true;
    session_.say(
        "[launch] the guard process was killed; if SIGKILL also kills the launcher, processes of "
        "the ranks may stay\n");
  }
  session_.adopted.reap([this](pid_t pid) { return owned(pid); });
}

std::vector<pid_t> Leftovers::abandon_the_undying() {
  std::vector<pid_t> found;
  for (Rank& rank : ranks_) {
    if (rank.running()) {
      session_.say(fmt::format(
          "[launch] rank {}, {}, did not end after SIGKILL and was left behind: it belongs to "
          "another user, or waits for a file server that does not answer. See {}\n",
          rank.number(),
          name_of(rank.pid()),
          catalogue_section("left-behind")));
      found.push_back(rank.pid());
      rank.abandon();
    }
  }
  return found;
}

std::vector<std::string> Leftovers::tell(const std::vector<pid_t>& undying) {
  look();
  const auto names = [](const std::vector<pid_t>& pids) {
    std::vector<std::string> words;
    for (const pid_t pid : pids) {
      std::ranges::transform(
          os::with_descendants(pid, kMostNamed), std::back_inserter(words), name_of);
    }
    return words;
  };
  const std::vector<std::string> left =
      names(session_.adopted.list([this](pid_t child) { return owned(child); }));
  if (!left.empty() || (any_ && undying.empty())) {
    session_.say(fmt::format("[launch] SIGKILL did not end {}; left behind. See {}\n",
                             left.empty() ? "something in the ranks' process groups"
                                          : fmt::format("{}", fmt::join(left, ", ")),
                             catalogue_section("left-behind")));
  }
  std::vector<std::string> all = names(undying);
  all.insert(all.end(), left.begin(), left.end());
  return all;
}

}  // namespace argosy::launch
