#include "argosy/launch/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/launch/guard.h"
#include "argosy/launch/job.h"
#include "argosy/launch/rank.h"
#include "argosy/launch/report.h"
#include "argosy/launch/sink.h"
#include "argosy/launch/spawn_error.h"
#include "argosy/launch/stop_policy.h"
#include "argosy/os/exit_watch.h"
#include "argosy/os/signals.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The others usually stop at once, and the report says it all; only when they do not is a first
/// word needed while they are waited for.
constexpr auto kNoticeDelay = 300ms;

/// How often to look whether groups without a leader have emptied; SIGCHLD tells of most.
constexpr auto kLeftoverTick = 20ms;

/// Descriptors 0, 1 and 2 exist from here on, so that no pipe of ours takes one of these numbers.
void open_missing_streams() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd < 0 || fd > 2) {
      ::close(fd);
      return;
    }
  }
}

Result<os::SignalFd> take_over_signals() {
  os::ignore_sigpipe();
  ::signal(SIGCHLD, SIG_DFL);  // ignored, the kernel would reap the ranks without telling how
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  const bool nohup = hangup.sa_handler == SIG_IGN;
  return os::SignalFd::create(
      {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD, nohup ? SIGCHLD : SIGHUP});
}

/// The supervision of one job; run() is the loop, everything else one step of it.
class Agent {
 public:
  Agent(
      const LaunchOptions& options, os::SignalFd signals, os::ExitWatch exits, Job job, Guard guard)
      : options_(options),
        signals_(std::move(signals)),
        exits_(std::move(exits)),
        job_(std::move(job)),
        guard_(std::move(guard)),
        policy_(options.shutdown_timeout),
        out_(STDOUT_FILENO) {
    if (!same_target(STDOUT_FILENO, STDERR_FILENO)) {
      own_err_.emplace(STDERR_FILENO);
    }
    job_.description.bar = out_.terminal() && std::string(terminal_type()) != "dumb";
    constexpr int kPrefixColumns = 9;  // "[rank 0] "
    job_.description.columns = std::max(0, out_.columns() - kPrefixColumns);
  }

  void serve(std::unique_ptr<StoreHost> store) {
    store_ = std::move(store);
    job_.description.store_port = store_ ? store_->port() : 0;
  }
  [[nodiscard]] const std::string& token() const { return job_.description.token; }

  int run() {
    if (const std::optional<int> code = start_ranks()) {
      return *code;
    }
    while (!done()) {
      turn();
    }
    return finish();
  }

 private:
  static const char* terminal_type() {
    const char* type = ::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): read-only
    return type == nullptr ? "dumb" : type;
  }
  Sink& err() { return own_err_ ? *own_err_ : out_; }
  void say(const std::string& text) { err().write(text); }

  /// nullopt: all run. Otherwise the launcher's exit code; those that had started are gone.
  std::optional<int> start_ranks() {
    const std::vector<std::string> inherited = os::environ_list();
    // A terminal would stop a rank that reads from it, for it is not in the foreground group.
    const int stdin_fd = ::isatty(STDIN_FILENO) == 1 ? -1 : STDIN_FILENO;
    ranks_.reserve(static_cast<size_t>(job_.description.ranks));
    for (int number = 0; number < job_.description.ranks; ++number) {
      Result<Rank> rank = Rank::start({.number = number,
                                       .command = options_.command,
                                       .env = rank_environment(job_.description, number, inherited),
                                       .stdin_fd = number == 0 ? stdin_fd : -1,
                                       .guard_fd = guard_.pid_fd(),
                                       .log_path = job_.log_path(number),
                                       .out = &out_,
                                       .err = &err()});
      if (!rank.ok()) {
        const SpawnError error = explain_spawn(options_.command.front(), rank.failure());
        kill_all();
        say(error.text);
        drain(Deadline::never());
        return error.exit_code;
      }
      exits_.add(rank->pidfd(), static_cast<uint64_t>(number))
          .or_throw<ConfigError>("launch.watch");
      ranks_.push_back(*std::move(rank));
      with_group_.push_back(&ranks_.back());  // stays put: the room was reserved
    }
    return std::nullopt;
  }

  void kill_all() {
    for (Rank& rank : ranks_) {
      rank.signal_group(SIGKILL);  // the destructor reaps
    }
  }

  [[nodiscard]] bool any_running() const {
    return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.running(); });
  }

  /// Also lets the guard forget the groups that have emptied.
  [[nodiscard]] bool any_left() {
    for (Rank* rank : std::vector(with_group_)) {
      if (!rank->group_alive()) {
        guard_.forget(rank->pid());
        std::erase(with_group_, rank);
      }
    }
    return !with_group_.empty();
  }

  [[nodiscard]] bool done() {
    if (policy_.given_up(Clock::now())) {
      return true;
    }
    if (any_left()) {
      return false;
    }
    // The reader may be slow (a pager); only the user's signal stops waiting for it.
    return abandon_output_ || !(out_.pending() || err().pending());
  }

  /// One round: wait for something, then do everything that is to be done.
  void turn() {
    wait_for_events();
    read_signals();
    take_ends();
    for (Rank& rank : ranks_) {
      for (const int fd : rank.stream_fds()) {
        rank.forward(fd);
      }
    }
    reap_adopted();
    if (!any_running() && any_left()) {
      policy_.stop(Clock::now());  // what the ranks left behind in their groups
    }
    if (const std::optional<int> signal = policy_.due(Clock::now())) {
      if (*signal == SIGKILL && any_running()) {
        say(fmt::format("[launch] killing what did not stop within {}\n",
                        duration_text(options_.shutdown_timeout)));
      }
      for (Rank& rank : ranks_) {
        rank.signal_group(*signal);
      }
      asked_ = true;
    }
    give_notice();
    out_.flush();
    err().flush();
  }

  void give_notice() {
    if (first_ && !told_of_failure_ && any_running() && Clock::now() >= first_->at + kNoticeDelay) {
      told_of_failure_ = true;
      say(fmt::format("[launch] {}; stopping the others\n", describe(*first_)));
    }
    if (out_.broken() && own_err_ && !told_of_closed_output_ && any_running()) {
      told_of_closed_output_ = true;
      say("[launch] standard output was closed by its reader; the ranks run on\n");
    }
  }

  void wait_for_events() {
    polls_.clear();
    const auto add = [&](int fd, short events) { polls_.push_back({fd, events, 0}); };
    add(signals_.fd(), POLLIN);
    add(exits_.fd(), POLLIN);
    for (Sink* sink : {&out_, &err()}) {
      if (sink->pending()) {
        add(sink->poll_fd(), POLLOUT);
      }
    }
    for (const Rank& rank : ranks_) {
      for (const int fd : rank.stream_fds()) {
        add(fd, POLLIN);
      }
    }
    const std::chrono::milliseconds timeout = time_to_wake();
    (void)::poll(polls_.data(), polls_.size(), static_cast<int>(timeout.count()));
  }

  /// How long poll() may wait; negative: for ever.
  [[nodiscard]] std::chrono::milliseconds time_to_wake() {
    std::optional<Clock::time_point> wake = policy_.wake();
    const auto no_later_than = [&](Clock::time_point at) {
      wake = std::min(wake.value_or(at), at);
    };
    if (first_ && !told_of_failure_) {
      no_later_than(first_->at + kNoticeDelay);
    }
    if (!any_running() && any_left()) {
      no_later_than(Clock::now() + kLeftoverTick);
    }
    if (!wake) {
      return -1ms;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*wake - Clock::now());
    return std::clamp<std::chrono::milliseconds>(left, 0ms, 1h);
  }

  void read_signals() {
    while (const std::optional<int> signal = signals_.next()) {
      if (*signal == SIGCHLD) {
        continue;  // pidfds tell which
      }
      if (*signal == SIGUSR1 || *signal == SIGUSR2) {
        for (Rank& rank : ranks_) {
          rank.signal_process(*signal);
        }
        continue;
      }
      policy_.interrupt(*signal, Clock::now());
      if (!any_running()) {
        abandon_output_ = true;
        continue;
      }
      if (!told_of_signal_) {
        told_of_signal_ = true;
        say(fmt::format(
            "[launch] {}: passed on to the ranks, which have {} to stop; once more kills "
            "them at once\n",
            os::signal_name(*signal),
            duration_text(options_.shutdown_timeout)));
      }
    }
  }

  /// Reaps the ranks that have ended, in the order of their deaths.
  void take_ends() {
    std::vector<RankEnd> batch;
    for (const uint64_t number : exits_.ended()) {
      Rank& rank = ranks_[number];
      std::optional<RankEnd> end = rank.reap();
      if (!end) {
        continue;
      }
      rank.forward_rest();
      end->asked_to_stop = asked_;
      batch.push_back(*end);
    }
    std::vector<RankEnd> failed;
    std::ranges::copy_if(
        batch, std::back_inserter(failed), [](const RankEnd& end) { return !end.exit.ok(); });
    if (!failed.empty() && !first_ && !policy_.interrupted_by()) {
      first_ = failed[root_cause(failed)];
      policy_.stop(Clock::now());
    }
    for (const RankEnd& end : batch) {
      if (!first_ || end.rank != first_->rank) {
        others_.push_back(end);
      }
    }
  }

  /// Orphans of the ranks are ours to reap, for we are their subreaper.
  void reap_adopted() {
    while (true) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
        return;
      }
      const pid_t pid = info.si_pid;
      const bool ours = pid == guard_.pid() || std::ranges::any_of(ranks_, [&](const Rank& rank) {
                          return rank.running() && rank.pid() == pid;
                        });
      if (ours) {
        return;  // reaped by its owner, in the next round at the latest
      }
      ::waitpid(pid, nullptr, WNOHANG);
    }
  }

  void drain(const Deadline& deadline) {
    out_.drain(deadline);
    err().drain(deadline);
  }

  int finish() {
    for (Rank& rank : ranks_) {
      rank.forward_rest();
    }
    int code = 0;
    if (first_) {
      const Rank& rank = ranks_[static_cast<size_t>(first_->rank)];
      say(render({.first = *first_,
                  .last_lines = rank.last_lines(),
                  .log_path = rank.log_path(),
                  .others = others_}));
      code = first_->exit.shell_code();
    } else if (policy_.interrupted_by()) {
      code = 128 + *policy_.interrupted_by();
    }
    for (Rank& rank : ranks_) {
      if (rank.running()) {
        say(fmt::format(
            "[launch] rank {} (pid {}) does not even end by SIGKILL, often because a file "
            "server does not answer; left behind\n",
            rank.number(),
            rank.pid()));
        rank.abandon();
        code = std::max(code, 1);
      }
    }
    drain(abandon_output_ ? Deadline::after(100ms) : Deadline::never());
    return code;
  }

  const LaunchOptions& options_;
  os::SignalFd signals_;
  os::ExitWatch exits_;
  Job job_;
  Guard guard_;
  StopPolicy policy_;
  Sink out_;
  std::optional<Sink> own_err_{};
  std::unique_ptr<StoreHost> store_{};
  std::vector<Rank> ranks_{};
  std::vector<Rank*> with_group_{};  ///< those of whose process group something still lives
  std::vector<pollfd> polls_{};
  std::optional<RankEnd> first_{};
  std::vector<RankEnd> others_{};
  bool asked_ = false;  ///< the ranks have got a signal from us
  bool told_of_failure_ = false;
  bool told_of_signal_ = false;
  bool told_of_closed_output_ = false;
  bool abandon_output_ = false;
};

}  // namespace

int run(const LaunchOptions& options, const StoreFactory& make_store) {
  open_missing_streams();
  os::SignalFd signals = take_over_signals().or_throw<ConfigError>("launch.signals");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Job job = prepare_job(options, this_node());
  Guard guard = Guard::start().or_throw<ConfigError>("launch.guard");
  os::ExitWatch exits = os::ExitWatch::create().or_throw<ConfigError>("launch.watch");
  Agent agent(options, std::move(signals), std::move(exits), std::move(job), std::move(guard));
  agent.serve(make_store ? make_store(agent.token()) : nullptr);
  return agent.run();
}

}  // namespace argosy::launch
