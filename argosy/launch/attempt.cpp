#include "argosy/launch/attempt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/secrets.h"
#include "argosy/base/strings.h"
#include "argosy/base/terminal.h"
#include "argosy/base/text.h"
#include "argosy/launch/process_setup.h"
#include "argosy/launch/report.h"
#include "argosy/os/addresses.h"
#include "argosy/os/oom.h"
#include "argosy/os/subprocess.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The others usually stop at once, and the report says it all; only when they do not is a first
/// word needed while they are waited for.
constexpr auto kNoticeDelay = 300ms;

/// Ranks beside each other differ. See https://no-color.org.
std::string colour_of(int rank) {
  constexpr int kFirst = 31;  // red; the last one is cyan: white and black may be the background
  constexpr int kColours = 6;
  return env::get("NO_COLOR") || !terminal::type_redraws()
             ? ""
             : fmt::format("\x1b[{}m", kFirst + (rank + 1) % kColours);
}

/// By a code or an abort, as programs react to the loss of a peer.
bool fails_by_itself(const RankEnd& end) {
  return !end.exit.ok() && (end.exit.signal == 0 || end.exit.signal == SIGABRT);
}

/// How often to look whether what the ranks left behind has ended; SIGCHLD tells of most.
constexpr auto kLeftoverTick = 20ms;

}  // namespace

Attempt::Attempt(Session& session) : session_(session), policy_(session.options.shutdown_timeout) {}

Attempt::~Attempt() {
  for (Rank& rank : ranks_) {
    rank.signal_group(SIGKILL);
  }
}

Outcome Attempt::run(RestartPolicy& restarts) {
  std::optional<SpawnError> error;
  if (!session_.state.stopping()) {
    error = start_ranks();
  }
  if (error) {
    session_.say(error->text);
    policy_.stop(Clock::now());
    send_signals();
    tell_of_spawn_failure(*error);
  }
  leftovers_.reap();  // of those that ended before we had our signals, none will tell
  leftovers_.look();
  talk(restarts);  // where none was started, nothing of ours will wake us
  while (talk_.waiting()) {
    turn(restarts);
  }
  Outcome outcome = report();
  if (error && !session_.met) {  // what was said of it is all there is to say
    return {.exit_code = error->exit_code, .signal = outcome.signal};
  }
  outcome.node_zero_lost ? session_.say(outcome.words) : session_.say_for_all(outcome.words);
  return outcome;
}

/// nullopt: all run. Otherwise why one does not; those before it do.
std::optional<SpawnError> Attempt::start_ranks() {
  if (session_.job.program.error) {
    return session_.job.program.error;
  }
  const std::vector<std::string> inherited = os::environ_list();
  // A terminal would stop a rank that reads from it, for it is not in the foreground group.
  const bool no_input = session_.options.leash || ::isatty(STDIN_FILENO) == 1;
  const int stdin_fd = no_input ? -1 : STDIN_FILENO;
  const JobDescription& job = session_.job.description;
  ranks_.reserve(static_cast<size_t>(job.ranks));
  open_filters();
  oom_kills_at_start_ = os::oom_kills();
  for (int local = 0; local < job.ranks; ++local) {
    const std::string error_file =
        session_.job.logs.error_file(job.first_rank + local, job.local_offset + local, job.restart);
    prepare_error_file(error_file);
    std::vector<std::string> env =
        rank_environment(job,
                         local,
                         inherited,
                         error_file.empty() ? "" : std::filesystem::absolute(error_file).string());
    const int heart = hangs_.watch(env);
    Result<Rank> rank = Rank::start(
        {.number = job.first_rank + local,
         .command = session_.job.program.for_rank(job.virtual_local_rank ? 0 : local),
         .env = std::move(env),
         .stdin_fd = job.first_rank + local == 0 ? stdin_fd : -1,
         .guard_fd = session_.guard.pid_fd(),
         .keep_fd = heart,
         .cpus = job.cpus.empty() ? std::vector<int>() : job.cpus.at(static_cast<size_t>(local)),
         .open_files = session_.open_files,
         .output = routes(local)});
    if (!rank.ok()) {
      return explain_spawn(session_.job.program.args.front(), rank.failure());
    }
    session_.exits.add(rank->pidfd(), static_cast<uint64_t>(local)).or_throw<Error>("launch.watch");
    ranks_.push_back(*std::move(rank));
    leftovers_.add(ranks_.back());  // stays put: the room was reserved
  }
  return std::nullopt;
}

void Attempt::open_filters() {
  const JobDescription& job = session_.job.description;
  const LogPlan& logs = session_.job.logs;
  const auto open = [&](bool out, const std::vector<std::string>& needles) {
    const std::string path = logs.filtered(out, job.node_rank, job.restart);
    return path.empty() ? nullptr : std::make_shared<LineFilter>(needles, path);
  };
  out_filter_ = open(true, logs.out_filters);
  err_filter_ = open(false, logs.err_filters);
}

RankOutput::Start Attempt::routes(int local) {
  const JobDescription& job = session_.job.description;
  const std::vector<int>& filter = session_.options.local_ranks_filter;
  const int local_rank = job.local_offset + local;
  const bool wanted = filter.empty() || std::ranges::count(filter, local_rank) > 0;
  const RankFiles files = session_.job.logs.files(job.first_rank + local, local_rank, job.restart);
  const auto file = [&](const std::string& path) {
    return path.empty() ? nullptr : std::make_shared<LogFile>(path, files.start);
  };
  Route out{&session_.output.out(), wanted && files.out_shown, file(files.out)};
  Route err{&session_.output.err(), wanted && files.err_shown};
  err.file = files.err == files.out ? out.file : file(files.err);
  out.filter = out_filter_;
  err.filter = err_filter_;
  return {
      .prefix = line_prefix(session_.options.line_prefix, job, local),
      // Where a queue or mpirun puts several launchers' output together, its terminal is no user's.
      .colour = session_.options.one_output ? "" : colour_of(job.first_rank + local),
      .live = job.first_rank + local == 0 && terminal::type_redraws(),
      .out = std::move(out),
      .err = std::move(err),
      .rank = job.first_rank + local,
      .combined = session_.combined.get()};
}

/// "0, 3-5"
std::string Attempt::running_ranks() const {
  std::vector<int> numbers;
  for (const Rank& rank : ranks_) {
    if (rank.running()) {
      numbers.push_back(rank.number());
    }
  }
  return strings::ranges(numbers);
}

bool Attempt::any_running() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.running(); });
}

/// One round: wait for something, then do everything that is to be done.
void Attempt::turn(RestartPolicy& restarts) {
  ++turn_;
  session_.output.flush();  // before the wait: nothing wakes it for a file that has room
  wait_for_events();
  read_signals();
  take_ends();
  for (Rank& rank : ranks_) {
    for (const int fd : rank.output().fds()) {
      rank.output().forward(fd);
    }
  }
  if (!policy_.stopping()) {
    hangs_.look();
    judge(hangs_.end_the_hung());
  }
  leftovers_.reap();
  leftovers_.look();
  if (!any_running() && leftovers_.any()) {
    policy_.stop(Clock::now());
  }
  talk(restarts);
  send_signals();
  give_notice();
}

/// Those that are due by the policy.
void Attempt::send_signals() {
  if (const std::optional<int> signal = policy_.due(Clock::now())) {
    if (*signal == SIGKILL && leftovers_.any()) {
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
    leftovers_.signal_orphans(*sent_);
  }
}

void Attempt::give_notice() {
  if (first_ && !told_of_failure_ && any_running() && Clock::now() >= failed_at_ + kNoticeDelay) {
    told_of_failure_ = true;
    session_.say(fmt::format("[launch] {}; stopping the others\n", describe(*first_)));
  }
  if (any_running()) {
    session_.tell_of_closed_output("; the ranks run on");
  }
}

void Attempt::wait_for_events() {
  polls_.clear();
  const auto add = [&](int fd, short events) { polls_.push_back({fd, events, 0}); };
  add(session_.signals.fd(), POLLIN);
  add(session_.exits.fd(), POLLIN);
  add(session_.journal->fd(), POLLIN);  // poll() passes over a negative one
  for (Sink* sink : {&session_.output.out(), &session_.output.err()}) {
    if (sink->pending()) {
      add(sink->poll_fd(), POLLOUT);
    }
  }
  for (const Rank& rank : ranks_) {
    for (const int fd : rank.output().fds()) {
      add(fd, POLLIN);
    }
  }
  const std::chrono::milliseconds timeout = time_to_wake();
  (void)::poll(polls_.data(), polls_.size(), static_cast<int>(timeout.count()));
}

/// How long poll() may wait; negative: for ever.
std::chrono::milliseconds Attempt::time_to_wake() {
  // Once nothing of ours is left, only the others are waited for.
  std::optional<Clock::time_point> wake = talk_.told_end() ? std::nullopt : policy_.wake();
  const auto no_later_than = [&](Clock::time_point at) { wake = std::min(wake.value_or(at), at); };
  if (first_ && !told_of_failure_ && any_running()) {
    no_later_than(failed_at_ + kNoticeDelay);
  }
  if (!any_running() && leftovers_.any() && !talk_.told_end()) {
    no_later_than(Clock::now() + kLeftoverTick);
  }
  if (const auto others = talk_.wake()) {
    no_later_than(*others);
  }
  if (const auto pause = hangs_.time_between_looks();
      pause && any_running() && !policy_.stopping()) {
    no_later_than(Clock::now() + *pause);
  }
  if (!wake) {
    return -1ms;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*wake - Clock::now());
  return std::clamp<std::chrono::milliseconds>(left, 0ms, 1h);
}

void Attempt::read_signals() {
  while (const std::optional<int> signal = session_.signals.next()) {
    if (*signal == SIGCHLD) {
      continue;  // pidfds tell which
    }
    if (*signal == SIGUSR1 || *signal == SIGUSR2) {
      for (Rank& rank : ranks_) {
        rank.signal_process(*signal);
      }
      continue;
    }
    if (*signal == SIGTSTP || *signal == SIGCONT) {
      suspend_or_resume(*signal);
      continue;
    }
    const bool hurried = policy_.hurried();
    policy_.interrupt(*signal, Clock::now());
    if (policy_.hurried() && !hurried) {
      talk_.tell({.kind = JobEvent::Kind::kInterrupted, .signal = SIGKILL});
    } else if (!session_.state.interrupted_by()) {
      talk_.tell({.kind = JobEvent::Kind::kInterrupted, .signal = *signal});
    }
    if (!told_of_signal_ && any_running()) {
      told_of_signal_ = true;
      session_.say(
          fmt::format("[launch] {}: passed on to the ranks, which have {} to stop; once more kills "
                      "them at once\n",
                      os::signal_name(*signal),
                      text::duration(session_.options.shutdown_timeout)));
    }
  }
}

/// Ctrl-Z, and fg or bg after it: the ranks are in groups of their own, which the shell does not
/// know.
void Attempt::suspend_or_resume(int signal) {
  if (signal == SIGTSTP) {
    leftovers_.suspend_or_resume(SIGTSTP);
    session_.output.flush();
    stop_as_asked();
  }
  leftovers_.suspend_or_resume(SIGCONT);
  hangs_.begin_anew();
}

/// Has the kernel's out-of-memory killer been at work since the ranks started? nullopt: it does not
/// say.
std::optional<bool> Attempt::was_out_of_memory() const {
  const std::optional<int64_t> now = os::oom_kills();
  return now && oom_kills_at_start_ ? std::optional(*now > *oom_kills_at_start_) : std::nullopt;
}

std::string Attempt::shown_program() const {
  constexpr size_t kMost = 200;
  std::string text = fmt::format("{}", fmt::join(secrets::hidden(session_.job.program.args), " "));
  std::ranges::replace(text, '\n', ' ');
  return text.size() <= kMost ? text : text.substr(0, kMost) + " …";
}

/// Reaps the ranks that have ended, in the order of their deaths.
void Attempt::take_ends() {
  std::vector<RankEnd> batch;
  std::ranges::copy(session_.exits.ended(), std::back_inserter(ended_));
  std::erase_if(ended_, [&](uint64_t number) {
    Rank& rank = ranks_[number];
    std::optional<RankEnd> end = rank.reap();
    if (end) {
      if (end->exit.signal == SIGKILL && !end->asked_to_stop) {
        end->out_of_memory = was_out_of_memory();
      }
      rank.output().forward_rest();
      if (end->exit.signal == SIGABRT && !end->asked_to_stop && end->hung.empty()) {
        end->threw = exception_of(error_of(*end), rank.output().last_lines());
      }
      batch.push_back(*end);
    }
    return end || !rank.running();
  });
  if (!policy_.stopping() && std::ranges::any_of(batch, fails_by_itself)) {
    const std::vector<RankEnd> stopped = hangs_.end_the_stopped();  // the cause goes first
    batch.insert(batch.begin(), stopped.begin(), stopped.end());
  }
  judge(std::move(batch));
}

/// What the ends mean for the job, once they are known.
void Attempt::judge(std::vector<RankEnd> batch) {
  if (!batch.empty() && !first_) {
    wall_ = WallClock();  // a machine that slept since the ranks started has other times now
  }
  std::vector<RankEnd> failed;
  for (RankEnd& end : batch) {
    end.at_us = job_time_us(rank_of(end).ended_at());
    end.turn = turn_;
    end.node = session_.journal->node();
    if (session_.met) {
      end.host = session_.met->plan.nodes.at(static_cast<size_t>(end.node)).host;
    }
    if (!end.exit.ok()) {
      failed.push_back(end);
    }
    ends_.push_back(std::move(end));
  }
  if (policy_.stopping() || failed.empty()) {
    return;  // once the job stops, for whatever reason, no end is the cause any more
  }
  first_ = failed[root_cause(failed)];
  failed_at_ = Clock::now();
  policy_.stop(failed_at_,
               !first_->stopped.empty()   ? StopPolicy::kForOthersToSay
               : fails_by_itself(*first_) ? StopPolicy::kForOthersToFail
                                          : 0ms);
  talk_.tell({.kind = JobEvent::Kind::kFailed, .ends = {with_its_words(*first_)}});
}

/// By node 0's clock.
int64_t Attempt::job_time_us(Clock::time_point at) const {
  return wall_.us(at) + (session_.met ? session_.met->clock_offset_us : 0);
}

const Rank& Attempt::rank_of(const RankEnd& end) const {
  return ranks_[static_cast<size_t>(end.rank - ranks_.front().number())];
}

/// The last words, and what they mean for the job.
Outcome Attempt::report() {
  for (Rank& rank : ranks_) {
    rank.output().forward_rest();
    session_.logs_cut = session_.logs_cut || rank.output().logs_cut();
    session_.errors_shown = session_.errors_shown || rank.output().errors_shown();
  }
  const std::vector<pid_t> undying = leftovers_.abandon_the_undying();
  return outcome_of(session_.state,
                    session_.met ? session_.met->plan : JobPlan{},
                    {.node = session_.journal->node(),
                     .host = os::host_name(),
                     .signal = policy_.interrupted_by(),
                     .left_behind = leftovers_.tell(undying),
                     .undying = !undying.empty()});
}

/// `end` with what the rank said, as far as it was read.
RankEnd Attempt::with_its_words(RankEnd end) const {
  const Rank& rank = rank_of(end);
  end.log_path = rank.output().log_paths();
  end.last_words = rank.output().last_words(session_.output.err(), rank.ended_at());
  if (failed_by_itself(end)) {
    end.program = shown_program();
    end.last_lines = rank.output().last_lines();
    end.error = error_of(end);
  }
  return end;
}

void Attempt::tell_of_spawn_failure(const SpawnError& error) {
  const int started = static_cast<int>(ranks_.size());  // the one after them did not
  const int node = session_.journal->node();
  spawn_failure_ =
      RankEnd{.rank = session_.job.description.first_rank + started,
              .node = node,
              .exit = {.code = error.exit_code},
              .at_us = job_time_us(Clock::now()),
              .host = session_.met ? session_.met->plan.nodes.at(static_cast<size_t>(node)).host
                                   : std::string(),
              .last_lines = {error.text.substr(0, error.text.find('\n'))},
              .program = shown_program()};
  talk_.tell({.kind = JobEvent::Kind::kFailed, .ends = {*spawn_failure_}});
}

void Attempt::hear() {
  talk_.hear(any_running(), [this] { judge(hangs_.end_the_stopped()); });
}

/// Hears what all launchers tell, this one included, and tells what is due.
void Attempt::talk(RestartPolicy& restarts) {
  hear();
  if (!talk_.told_end() && (!leftovers_.any() || policy_.given_up(Clock::now()))) {
    tell_end();
    hear();
  }
  talk_.decide(restarts);
  hear();
  talk_.wait_for_others();
}

/// How our ranks have ended, with all that they wrote.
void Attempt::tell_end() {
  std::vector<RankEnd> ends;
  for (Rank& rank : ranks_) {
    rank.output().forward_rest();
  }
  std::ranges::transform(
      ends_, std::back_inserter(ends), [&](const RankEnd& end) { return with_its_words(end); });
  if (spawn_failure_) {
    ends.push_back(*spawn_failure_);
  }
  talk_.tell_end(std::move(ends), leftovers_.any());
}

/// What the rank itself said of its end.
std::optional<ErrorNote> Attempt::error_of(const RankEnd& end) const {
  const JobDescription& job = session_.job.description;
  const int local_rank = end.rank - job.first_rank + job.local_offset;
  return read_error_file(session_.job.logs.error_file(end.rank, local_rank, job.restart));
}

}  // namespace argosy::launch
