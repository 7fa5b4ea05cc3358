#include "argosy/launch/rank.h"

#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace argosy::launch {

Rank::Rank(int number, os::Subprocess process, RankOutput output)
    : number_(number), process_(std::move(process)), output_(std::move(output)) {}

Result<Rank> Rank::start(const Start& start) {
  Result<os::Pipe> out = os::make_pipe();
  Result<os::Pipe> err = os::make_pipe();
  for (Result<os::Pipe>* pipe : {&out, &err}) {
    if (!pipe->ok()) {
      return std::move(*pipe).failure();
    }
    // Our end only: an end is an open file of its own, so the rank's writes still block.
    Status nonblocking = os::set_nonblocking((*pipe)->read.get());
    if (!nonblocking.ok()) {
      return std::move(nonblocking).failure();
    }
  }
  Result<os::Subprocess> process = os::Subprocess::spawn({.args = start.command,
                                                          .env = start.env,
                                                          .stdin_fd = start.stdin_fd,
                                                          .stdout_fd = out->write.get(),
                                                          .stderr_fd = err->write.get(),
                                                          .pid_fd = start.guard_fd,
                                                          .cpus = start.cpus,
                                                          .keep_fd = start.keep_fd,
                                                          .open_files = start.open_files});
  if (!process.ok()) {
    return std::move(process).failure();
  }
  return Rank(start.number,
              *std::move(process),
              RankOutput(start.output, std::move(out->read), std::move(err->read)));
}

std::optional<RankEnd> Rank::reap() {
  const Result<std::optional<os::Exit>> exit = process_.try_wait();
  if (reaped_ || !exit.ok() || !*exit) {
    return std::nullopt;
  }
  reaped_ = true;
  if (end_is_told_) {
    return std::nullopt;
  }
  ended_at_ = std::chrono::steady_clock::now();
  return RankEnd{.rank = number_,
                 .pid = process_.pid(),
                 .exit = **exit,
                 .ran = std::chrono::duration_cast<std::chrono::milliseconds>(ended_at_ - started_),
                 .hung = hung_,
                 .asked_to_stop = asked_to_stop_};
}

void Rank::end_hung(std::string what) {
  hung_ = std::move(what);
  ::kill(-pid(), SIGABRT);
  ::kill(-pid(), SIGCONT);  // one that is stopped would not notice
}

void Rank::kill_hung() {
  ::kill(-pid(), SIGKILL);
}

RankEnd Rank::end_stopped(std::string how,
                          std::string silence,
                          std::chrono::steady_clock::time_point since) {
  hung_ = std::move(silence);
  end_is_told_ = true;
  ended_at_ = since;
  kill_hung();
  return {.rank = number_,
          .pid = pid(),
          .exit = {.signal = SIGKILL},
          .ran = std::chrono::duration_cast<std::chrono::milliseconds>(
              std::chrono::steady_clock::now() - started_),
          .hung = hung_,
          .stopped = std::move(how)};
}

void Rank::suspend_or_resume(int signal) const {
  if (!group_gone_) {
    ::kill(-pid(), signal);
  }
}

bool Rank::group_alive() {
  // Asked no more once it was empty: its number may belong to strangers by then.
  group_gone_ = group_gone_ || (reaped_ && ::kill(-pid(), 0) != 0 && errno == ESRCH);
  return !group_gone_;
}

void Rank::signal_group(int signal) {
  // One that has ended without our noticing is not moved by it.
  const Result<bool> ended = reaped_ ? true : os::wait_ready(pidfd(), POLLIN, Deadline::after({}));
  asked_to_stop_ = asked_to_stop_ || !ended.ok() || !*ended;
  if (group_alive()) {
    ::kill(-pid(), signal);
  }
}

}  // namespace argosy::launch
