#include "argosy/launch/agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/launch/adopted.h"
#include "argosy/launch/guard.h"
#include "argosy/launch/job.h"
#include "argosy/launch/options/program.h"
#include "argosy/launch/output.h"
#include "argosy/launch/process_setup.h"
#include "argosy/launch/rank.h"
#include "argosy/launch/report.h"
#include "argosy/launch/spawn_error.h"
#include "argosy/launch/start_table.h"
#include "argosy/launch/stop_policy.h"
#include "argosy/launch/verdict.h"
#include "argosy/os/exit_watch.h"
#include "argosy/os/signals.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The others usually stop at once, and the report says it all; only when they do not is a first
/// word needed while they are waited for.
constexpr auto kNoticeDelay = 300ms;

/// How often to look whether what the ranks left behind has ended; SIGCHLD tells of most.
constexpr auto kLeftoverTick = 20ms;

/// After a signal the user or the system waits for the end, not for a reader that pauses.
constexpr auto kPatienceOnceStopped = 500ms;

/// The supervision of one job; run() is the loop, everything else one step of it.
class Agent {
 public:
  Agent(const LaunchOptions& options,
        os::SignalFd signals,
        os::ExitWatch exits,
        Adopted adopted,
        Job job,
        Guard guard)
      : options_(options),
        signals_(std::move(signals)),
        exits_(std::move(exits)),
        adopted_(std::move(adopted)),
        job_(std::move(job)),
        guard_(std::move(guard)),
        policy_(options.shutdown_timeout),
        output_(STDOUT_FILENO, STDERR_FILENO) {
    job_.description.bar = output_.out().terminal() && terminal_redraws();
    const auto prefix =
        static_cast<int>(line_prefix(options_.line_prefix, job_.description, 0).size());
    job_.description.columns = std::max(0, output_.out().columns() - prefix);
  }
  ~Agent() {
    for (Rank& rank : ranks_) {  // an exception ended the loop
      rank.signal_group(SIGKILL);
    }
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  Agent(Agent&&) = delete;
  Agent& operator=(Agent&&) = delete;

  void serve(std::unique_ptr<StoreHost> store) {
    store_ = std::move(store);
    job_.description.store_port = store_ ? store_->port() : 0;
  }
  [[nodiscard]] const std::string& token() const { return job_.description.token; }

  int run() {
    say(describe_start(job_, options_.verbose));
    const std::optional<SpawnError> error = start_ranks();
    if (error) {
      say(error->text);
      policy_.stop(Clock::now());
      send_signals();
    }
    reap_orphans();  // of those that ended before we had our signals, none will tell
    look_for_what_is_left();
    while (left_ && !policy_.given_up(Clock::now())) {
      turn();
    }
    const int code = report();
    return hand_over_output(error ? error->exit_code : code);
  }

 private:
  void say(const std::string& text) { output_.say(text); }

  /// nullopt: all run. Otherwise why one does not; those before it do.
  std::optional<SpawnError> start_ranks() {
    const std::vector<std::string> inherited = os::environ_list();
    // A terminal would stop a rank that reads from it, for it is not in the foreground group.
    const int stdin_fd = ::isatty(STDIN_FILENO) == 1 ? -1 : STDIN_FILENO;
    ranks_.reserve(static_cast<size_t>(job_.description.ranks));
    for (int number = 0; number < job_.description.ranks; ++number) {
      Result<Rank> rank =
          Rank::start({.number = number,
                       .command = job_.command,
                       .env = rank_environment(job_.description, number, inherited),
                       .stdin_fd = number == 0 ? stdin_fd : -1,
                       .guard_fd = guard_.pid_fd(),
                       .log_path = job_.log_path(number),
                       .prefix = line_prefix(options_.line_prefix, job_.description, number),
                       .shown = shows(number),
                       .out = &output_.out(),
                       .err = &output_.err()});
      if (!rank.ok()) {
        return explain_spawn(job_.command.front(), rank.failure());
      }
      exits_.add(rank->pidfd(), static_cast<uint64_t>(number))
          .or_throw<ConfigError>("launch.watch");
      ranks_.push_back(*std::move(rank));
      with_group_.push_back(&ranks_.back());  // stays put: the room was reserved
    }
    return std::nullopt;
  }

  [[nodiscard]] bool shows(int number) const {
    return options_.local_ranks_filter.empty() ||
           std::ranges::count(options_.local_ranks_filter, number) > 0;
  }

  [[nodiscard]] bool any_running() const {
    return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.running(); });
  }

  /// A child with an owner of its own: not to be reaped as an orphan.
  [[nodiscard]] bool owned(pid_t pid) const {
    return (pid == guard_.pid() && !guard_lost_) ||
           std::ranges::any_of(
               ranks_, [&](const Rank& rank) { return rank.running() && rank.pid() == pid; });
  }
  /// Not in any rank's group, which is signalled as a whole.
  [[nodiscard]] bool in_group(pid_t pid) const {
    const pid_t group = ::getpgid(pid);
    return std::ranges::any_of(with_group_, [&](const Rank* rank) { return rank->pid() == group; });
  }
  [[nodiscard]] Adopted::Others owned_or_in_group() const {
    return [this](pid_t pid) { return owned(pid) || in_group(pid); };
  }

  /// Looks whether anything of the job still lives; lets the guard forget the groups that have
  /// emptied.
  void look_for_what_is_left() {
    std::erase_if(with_group_, [&](Rank* rank) {
      const bool gone = !rank->group_alive();
      if (gone) {
        guard_.forget(rank->pid());
      }
      return gone;
    });
    left_ = !with_group_.empty() || any_running() || adopted_.alive(owned_or_in_group());
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
    reap_orphans();
    look_for_what_is_left();
    if (!any_running() && left_) {
      policy_.stop(Clock::now());
    }
    send_signals();
    give_notice();
    output_.flush();
  }

  /// Those that are due by the policy.
  void send_signals() {
    if (const std::optional<int> signal = policy_.due(Clock::now())) {
      if (*signal == SIGKILL && any_running()) {
        say(policy_.hurried() ? "[launch] killing the ranks at once\n"
                              : fmt::format("[launch] killing what did not stop within {}\n",
                                            duration_text(options_.shutdown_timeout)));
      }
      for (Rank& rank : ranks_) {
        rank.signal_group(*signal);
      }
      sent_ = signal;
    }
    if (sent_ && !any_running()) {  // a rank may need its helpers until it has ended
      adopted_.signal(*sent_, owned_or_in_group());
    }
  }

  void give_notice() {
    const std::optional<RankEnd>& first = verdict_.first();
    if (first && !told_of_failure_ && any_running() && Clock::now() >= first->at + kNoticeDelay) {
      told_of_failure_ = true;
      say(fmt::format("[launch] {}; stopping the others\n", describe(*first)));
    }
    if (any_running()) {
      tell_of_closed_output("; the ranks run on");
    }
  }

  void tell_of_closed_output(std::string_view consequence) {
    if (output_.out().broken() && !output_.shared() && !told_of_closed_output_) {
      told_of_closed_output_ = true;
      const int error = output_.out().error();
      say(fmt::format("[launch] standard output {}{}\n",
                      error == 0 || error == EPIPE ? "was closed by its reader"
                                                   : "ends here: " + errno_message(error),
                      consequence));
    }
  }

  /// Did standard output end by an error, a full disk, so that no reader chose to miss the rest?
  [[nodiscard]] bool output_was_cut() {
    const Sink& out = output_.out();
    return out.broken() && out.error() != 0 && out.error() != EPIPE;
  }

  void wait_for_events() {
    polls_.clear();
    const auto add = [&](int fd, short events) { polls_.push_back({fd, events, 0}); };
    add(signals_.fd(), POLLIN);
    add(exits_.fd(), POLLIN);
    for (Sink* sink : {&output_.out(), &output_.err()}) {
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
    if (verdict_.first() && !told_of_failure_ && any_running()) {
      no_later_than(verdict_.first()->at + kNoticeDelay);
    }
    if (!any_running() && left_) {
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
      if (!told_of_signal_ && any_running()) {
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
      const std::optional<RankEnd> end = rank.reap();
      if (!end) {
        continue;
      }
      rank.forward_rest();
      batch.push_back(*end);
    }
    if (verdict_.add(batch, policy_.stopping())) {
      policy_.stop(Clock::now());
    }
  }

  void reap_orphans() {
    if (!guard_lost_ && guard_.lost()) {
      guard_lost_ = true;
      say("[launch] the guard process was killed; should the launcher be killed by SIGKILL as "
          "well, what the ranks have started may stay\n");
    }
    adopted_.reap([this](pid_t pid) { return owned(pid); });
  }

  /// The last words of all ranks, which have all ended, are the same and stand above, once for
  /// each, where the report is about to be read.
  bool all_end_with_the_same_words() {
    const auto words = [&](const Rank& rank) { return rank.last_words(output_.err()); };
    return ranks_.size() > 1 && !any_running() && !words(ranks_.front()).empty() &&
           std::ranges::all_of(ranks_,
                               [&](const Rank& rank) { return words(rank) == words(ranks_[0]); });
  }

  /// The last words, and the exit code.
  int report() {
    for (Rank& rank : ranks_) {
      rank.forward_rest();
    }
    int code = 0;
    if (const std::optional<RankEnd>& first = verdict_.first()) {
      const Rank& rank = ranks_[static_cast<size_t>(first->rank)];
      say(render({.first = *first,
                  .last_lines = rank.last_lines(),
                  .log_path = rank.log_path(),
                  .others = verdict_.others(),
                  .same_words = all_end_with_the_same_words()}));
      code = first->exit.shell_code();
    } else if (policy_.interrupted_by()) {
      code = 128 + *policy_.interrupted_by();
      say(render_unexpected(*policy_.interrupted_by(), verdict_.others()));
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
    return code;
  }

  /// A reader may be slow (a pager). Nobody waits for it for ever, and after a signal hardly at
  /// all.
  int hand_over_output(int code) {
    const bool stopped = policy_.interrupted_by().has_value();
    std::optional<int> interrupted;
    output_.hand_over(
        stopped ? kPatienceOnceStopped : options_.reader_patience, signals_.fd(), [&] {
          while (const std::optional<int> signal = signals_.next()) {
            if (*signal != SIGCHLD && *signal != SIGUSR1 && *signal != SIGUSR2) {
              interrupted = signal;
            }
          }
          return interrupted.has_value();
        });
    if (output_was_cut()) {
      tell_of_closed_output(job_.log_dir.empty() ? "" : "; the rank logs have all of it");
      output_.flush();
      if (code == 0 && job_.log_dir.empty()) {
        return 1;  // what the ranks printed is lost
      }
    }
    return code == 0 && interrupted ? 128 + *interrupted : code;
  }

  const LaunchOptions& options_;
  os::SignalFd signals_;
  os::ExitWatch exits_;
  Adopted adopted_;
  Job job_;
  Guard guard_;
  StopPolicy policy_;
  Output output_;
  std::unique_ptr<StoreHost> store_{};
  std::vector<Rank> ranks_{};
  std::vector<Rank*> with_group_{};  ///< those of whose process group something still lives
  std::vector<pollfd> polls_{};
  Verdict verdict_{};
  std::optional<int> sent_{};  ///< the last signal that the ranks got from us
  bool left_ = false;          ///< something of the job still lives
  bool guard_lost_ = false;
  bool told_of_failure_ = false;
  bool told_of_signal_ = false;
  bool told_of_closed_output_ = false;
};

}  // namespace

int run(const LaunchOptions& options, const StoreFactory& make_store) {
  open_missing_streams();
  os::SignalFd signals = take_over_signals().or_throw<ConfigError>("launch.signals");
  Adopted adopted;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Program program = find_command(options, env::get);
  if (program.error) {
    fmt::print(stderr, "{}", program.error->text);
    return program.error->exit_code;
  }
  Job job = prepare_job(options, this_node());
  adopted.know_by("ARGOSY_RUN_ID=" + job.description.run_id);
  job.command = std::move(program.args);
  if (options.dry_run) {
    fmt::print("{}", describe_start(job, true));
    return 0;
  }
  Guard guard = Guard::start().or_throw<ConfigError>("launch.guard");
  os::ExitWatch exits = os::ExitWatch::create().or_throw<ConfigError>("launch.watch");
  Agent agent(options,
              std::move(signals),
              std::move(exits),
              std::move(adopted),
              std::move(job),
              std::move(guard));
  agent.serve(make_store ? make_store(agent.token()) : nullptr);
  return agent.run();
}

}  // namespace argosy::launch
