// How an attempt ends: who is signalled, what is left, and what is said of it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/catalogue.h"
#include "argosy/base/exit_codes.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/launch/attempt.h"
#include "argosy/launch/report.h"
#include "argosy/os/addresses.h"
#include "argosy/os/children.h"
#include "argosy/os/fd.h"

namespace argosy::launch {
namespace {

using Clock = std::chrono::steady_clock;

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
bool Attempt::owned(pid_t pid) const {
  return (pid == session_.guard.pid() && !session_.guard_lost) ||
         std::ranges::any_of(ranks_,
                             [&](const Rank& rank) { return rank.running() && rank.pid() == pid; });
}

/// In a rank's group, which is signalled as a whole.
bool Attempt::in_group(pid_t pid) const {
  const pid_t group = ::getpgid(pid);
  return std::ranges::any_of(with_group_, [&](const Rank* rank) { return rank->pid() == group; });
}

Adopted::Others Attempt::owned_or_in_group() const {
  return [this](pid_t pid) { return owned(pid) || in_group(pid); };
}

/// Looks whether anything of the job still lives; lets the guard forget the groups that have
/// emptied.
void Attempt::look_for_what_is_left() {
  std::erase_if(with_group_, [&](Rank* rank) {
    const bool gone = !rank->group_alive();
    if (gone) {
      session_.guard.forget(rank->pid());
    }
    return gone;
  });
  left_ = !with_group_.empty() || any_running() || session_.adopted.alive(owned_or_in_group());
}

/// Those that are due by the policy.
void Attempt::send_signals() {
  if (const std::optional<int> signal = policy_.due(Clock::now())) {
    if (*signal == SIGKILL && left_) {
      session_.say(policy_.hurried()
                       ? "[launch] killing the ranks at once\n"
                       : fmt::format("[launch] killing what did not stop within {}: {}\n",
                                     text::duration(session_.options.shutdown_timeout),
                                     any_running() ? "rank " + running_ranks()
                                                   : "processes that the ranks left"));
    }
    for (Rank& rank : ranks_) {
      rank.signal_group(*signal);
    }
    sent_ = signal;
  }
  if (sent_ && !any_running()) {  // a rank may need its helpers until it has ended
    session_.adopted.signal(*sent_, owned_or_in_group());
  }
}

void Attempt::reap_orphans() {
  if (!session_.guard_lost && session_.guard.lost()) {
    session_.guard_lost = true;
    session_.say(
        "[launch] the guard process was killed; should the launcher be killed by SIGKILL as "
        "well, what the ranks have started may stay\n");
  }
  session_.adopted.reap([this](pid_t pid) { return owned(pid); });
}

/// Ranks that even SIGKILL does not end.
std::vector<pid_t> Attempt::abandon_the_undying() {
  std::vector<pid_t> found;
  for (Rank& rank : ranks_) {
    if (rank.running()) {
      session_.say(fmt::format(
          "[launch] rank {}, {}, does not even end by SIGKILL: it belongs to another "
          "user, or waits for a file server that does not answer; left behind. See {}\n",
          rank.number(),
          name_of(rank.pid()),
          catalogue_section("left-behind")));
      found.push_back(rank.pid());
      rank.abandon();
    }
  }
  return found;
}

/// Processes that we cannot end, in words: those of `undying` ranks, of which is told already, and
/// what ranks have left.
std::vector<std::string> Attempt::tell_of_what_is_left(const std::vector<pid_t>& undying) {
  look_for_what_is_left();
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
  if (!left.empty() || (left_ && undying.empty())) {
    session_.say(fmt::format("[launch] left behind: {}, which SIGKILL does not end. See {}\n",
                             left.empty() ? "something in the ranks' process groups"
                                          : fmt::format("{}", fmt::join(left, ", ")),
                             catalogue_section("left-behind")));
  }
  std::vector<std::string> all = names(undying);
  all.insert(all.end(), left.begin(), left.end());
  return all;
}

/// The last words, and what they mean for the job.
Outcome Attempt::report() {
  for (Rank& rank : ranks_) {
    rank.output().forward_rest();
    session_.logs_cut = session_.logs_cut || rank.output().logs_cut();
    session_.errors_shown = session_.errors_shown || rank.output().errors_shown();
  }
  const std::vector<pid_t> undying = abandon_the_undying();
  return outcome_of(session_.state,
                    session_.met ? session_.met->plan : JobPlan{},
                    {.node = session_.journal->node(),
                     .host = os::host_name(),
                     .signal = policy_.interrupted_by(),
                     .left_behind = tell_of_what_is_left(undying),
                     .undying = !undying.empty()});
}

}  // namespace argosy::launch
