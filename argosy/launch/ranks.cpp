#include "argosy/launch/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/secrets.h"
#include "argosy/base/strings.h"
#include "argosy/base/terminal.h"
#include "argosy/os/oom.h"
#include "argosy/os/subprocess.h"

namespace argosy::launch {
namespace {

/// Neighbouring ranks get different colors. See https://no-color.org.
std::string color_of(int rank) {
  constexpr int kFirst = 31;  // red
  constexpr int kColors = 6;  // to cyan: white or black may be the background
  return env::get("NO_COLOR") || !terminal::type_redraws()
             ? ""
             : fmt::format("\x1b[{}m", kFirst + (rank + 1) % kColors);
}

}  // namespace

Ranks::~Ranks() {
  signal_groups(SIGKILL);
}

std::optional<SpawnError> Ranks::start(HangWatch& hangs, Leftovers& leftovers) {
  if (session_.job.program.error) {
    return session_.job.program.error;
  }
  const JobDescription& job = session_.job.description;
  const std::vector<std::string> inherited = os::environ_list();
  ranks_.reserve(static_cast<size_t>(job.ranks));  // they keep their addresses
  out_filter_ = open_filter(StandardStream::kOut);
  err_filter_ = open_filter(StandardStream::kErr);
  oom_kills_at_start_ = os::oom_kills();
  for (int local = 0; local < job.ranks; ++local) {
    Result<Rank> rank = spawn(local, inherited, hangs);
    if (!rank.ok()) {
      return explain_spawn(session_.job.program.args.front(), rank.failure());
    }
    ranks_.push_back(*std::move(rank));
    leftovers.add(ranks_.back());
  }
  return std::nullopt;
}

std::optional<SpawnError> Ranks::start_again(int rank, HangWatch& hangs, Leftovers& leftovers) {
  const int local = rank - session_.job.description.first_rank;
  Rank& place = ranks_.at(static_cast<size_t>(local));
  place.signal_group(SIGKILL);
  finish_output(place);
  Result<Rank> again = spawn_again(local, hangs);
  if (!again.ok()) {
    return explain_spawn(session_.job.program.args.front(), again.failure());
  }
  std::destroy_at(&place);
  std::construct_at(&place, *std::move(again));
  leftovers.add(place);
  return std::nullopt;
}

/// The others live: nothing that happens here ends their launcher.
Result<Rank> Ranks::spawn_again(int local, HangWatch& hangs) {
  try {
    return spawn(local, os::environ_list(), hangs, LogFile::Start::kAtTheEnd);
  } catch (const std::exception& error) {
    return Failure{.what = error.what()};
  }
}

Result<Rank> Ranks::spawn(int local,
                          const std::vector<std::string>& inherited,
                          HangWatch& hangs,
                          std::optional<LogFile::Start> logs) {
  Rank::Start what = start_of(local, inherited);
  what.output = routes(local, logs);
  what.keep_fd = hangs.watch(what.env, static_cast<size_t>(local));
  Result<Rank> rank = Rank::start(what);
  if (rank.ok()) {
    session_.exits.add(rank->pidfd(), static_cast<uint64_t>(local)).or_throw<Error>("launch.watch");
  }
  return rank;
}

Rank::Start Ranks::start_of(int local, const std::vector<std::string>& inherited) const {
  const JobDescription& job = session_.job.description;
  const int number = job.first_rank + local;
  const std::string errors = error_file(number);
  prepare_error_file(errors);
  // A terminal would stop a rank that reads from it, because the rank is not in the foreground.
  const bool input = number == 0 && !session_.options.leash && ::isatty(STDIN_FILENO) != 1;
  return {
      .number = number,
      .command = session_.job.program.for_rank(job.virtual_local_rank ? 0 : local),
      .env = rank_environment(
          job, local, inherited, errors.empty() ? "" : std::filesystem::absolute(errors).string()),
      .stdin_fd = input ? STDIN_FILENO : -1,
      .guard_fd = session_.guard.pid_fd(),
      .cpus = job.cpus.empty() ? std::vector<int>() : job.cpus.at(static_cast<size_t>(local)),
      .open_files = session_.open_files};
}

std::shared_ptr<LineFilter> Ranks::open_filter(StandardStream stream) const {
  const JobDescription& job = session_.job.description;
  const LogPlan& logs = session_.job.logs;
  const std::string path = logs.filtered(stream, job.node_rank, job.restart);
  return path.empty() ? nullptr : std::make_shared<LineFilter>(logs.filters(stream), path);
}

RankOutput::Start Ranks::routes(int local, std::optional<LogFile::Start> logs) const {
  const JobDescription& job = session_.job.description;
  const std::vector<int>& filter = session_.options.local_ranks_filter;
  const int local_rank = job.local_offset + local;
  const bool wanted = filter.empty() || std::ranges::count(filter, local_rank) > 0;
  const RankFiles files = session_.job.logs.files(job.first_rank + local, local_rank, job.restart);
  const auto file = [&](const std::string& path) {
    return path.empty() ? nullptr : std::make_shared<LogFile>(path, logs.value_or(files.start));
  };
  Route out{&session_.output.out(), wanted && files.out_shown, file(files.out), out_filter_};
  Route err{&session_.output.err(), wanted && files.err_shown, nullptr, err_filter_};
  err.file = files.err == files.out ? out.file : file(files.err);
  return {
      .prefix = line_prefix(session_.options.line_prefix, job, local),
      // Where a queue or mpirun joins the output of several launchers, its terminal is no user's.
      .color = session_.options.one_output ? "" : color_of(job.first_rank + local),
      .live = job.first_rank + local == 0 && terminal::type_redraws(),
      .out = std::move(out),
      .err = std::move(err),
      .rank = job.first_rank + local,
      .combined = session_.combined.get()};
}

bool Ranks::any_running() const {
  return std::ranges::any_of(ranks_, &Rank::running);
}

std::string Ranks::running_names() const {
  std::vector<int> numbers;
  for (const Rank& rank : ranks_) {
    if (rank.running()) {
      numbers.push_back(rank.number());
    }
  }
  return (numbers.size() == 1 ? "rank " : "ranks ") + strings::ranges(numbers);
}

void Ranks::signal_processes(int signal) {
  for (Rank& rank : ranks_) {
    rank.signal_process(signal);
  }
}

void Ranks::signal_groups(int signal) {
  for (Rank& rank : ranks_) {
    rank.signal_group(signal);
  }
}

void Ranks::add_to(std::vector<pollfd>& polls) const {
  for (const Rank& rank : ranks_) {
    for (const int fd : rank.output().fds()) {
      polls.push_back({fd, POLLIN, 0});
    }
  }
}

void Ranks::forward_output() {
  for (Rank& rank : ranks_) {
    for (const int fd : rank.output().fds()) {
      rank.output().forward(fd);
    }
  }
}

void Ranks::finish_output() {
  for (Rank& rank : ranks_) {
    finish_output(rank);
  }
}

void Ranks::finish_output(Rank& rank) {
  rank.output().forward_rest();
  session_.logs_cut = session_.logs_cut || rank.output().logs_cut();
  session_.errors_shown = session_.errors_shown || rank.output().errors_shown();
}

std::vector<RankEnd> Ranks::reap() {
  std::vector<RankEnd> ends;
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
        end->threw =
            exception_of(read_error_file(error_file(end->rank)), rank.output().last_lines());
      }
      ends.push_back(*end);
    }
    return end || !rank.running();
  });
  return ends;
}

std::chrono::steady_clock::time_point Ranks::time_of(const RankEnd& end) const {
  return rank_of(end).ended_at();
}

RankEnd Ranks::with_words(RankEnd end) const {
  const Rank& rank = rank_of(end);
  end.log_path = rank.output().log_paths();
  end.last_words = rank.output().last_words(session_.output.err(), rank.ended_at());
  if (failed_by_itself(end)) {
    end.program = shown_program();
    end.last_lines = rank.output().last_lines();
    end.error = read_error_file(error_file(end.rank));
  }
  return end;
}

RankEnd Ranks::end_of_unstarted(const SpawnError& error) const {
  return {.rank = session_.job.description.first_rank + static_cast<int>(ranks_.size()),
          .exit = {.code = error.exit_code},
          .last_lines = {error.text.substr(0, error.text.find('\n'))},
          .program = shown_program()};
}

std::string Ranks::error_file(int rank) const {
  const JobDescription& job = session_.job.description;
  const int local_rank = rank - job.first_rank + job.local_offset;
  return session_.job.logs.error_file(rank, local_rank, job.restart);
}

/// Whether the kernel's out-of-memory killer was at work since the ranks started; nullopt: unknown.
std::optional<bool> Ranks::was_out_of_memory() const {
  const std::optional<int64_t> now = os::oom_kills();
  return now && oom_kills_at_start_ ? std::optional(*now > *oom_kills_at_start_) : std::nullopt;
}

std::string Ranks::shown_program() const {
  constexpr size_t kMost = 200;
  std::string text = fmt::format("{}", fmt::join(secrets::hidden(session_.job.program.args), " "));
  std::ranges::replace(text, '\n', ' ');
  return text.size() <= kMost ? text : text.substr(0, kMost) + " …";
}

const Rank& Ranks::rank_of(const RankEnd& end) const {
  return ranks_[static_cast<size_t>(end.rank - ranks_.front().number())];
}

}  // namespace argosy::launch
