#include "argosy/launch/rank.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace argosy::launch {
namespace {

constexpr size_t kChunk = size_t{64} << 10;  // what a pipe holds
constexpr int kChunksPerTurn = 4;

}  // namespace

Rank::Rank(const Start& start, os::Subprocess process)
    : number_(start.number),
      prefix_(start.prefix),
      shown_(start.shown),
      process_(std::move(process)) {}

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
                                                          .pid_fd = start.guard_fd});
  if (!process.ok()) {
    return std::move(process).failure();
  }
  Rank rank(start, *std::move(process));
  rank.streams_.push_back({.fd = std::move(out->read), .sink = start.out});
  rank.streams_.push_back({.fd = std::move(err->read), .sink = start.err});
  rank.log_path_ = start.log_path;
  return rank;
}

std::vector<int> Rank::stream_fds() const {
  std::vector<int> fds;
  for (const Stream& stream : streams_) {
    if (stream.fd && !stream.sink->full()) {
      fds.push_back(stream.fd.get());
    }
  }
  return fds;
}

Status Rank::open_log() {
  const std::filesystem::path folder = std::filesystem::path(log_path_).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return Failure::from_errno(fmt::format("make the folder {}", folder.string()), error.value());
  }
  Result<os::UniqueFd> opened = os::open_file(log_path_, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC);
  if (!opened.ok()) {
    return std::move(opened).failure();
  }
  log_ = *std::move(opened);
  return {};
}

void Rank::log(std::string_view bytes) {
  if (log_path_.empty()) {
    return;
  }
  Status status = log_ ? Status() : open_log();
  if (status.ok()) {
    status = os::write_all(log_.get(), bytes);
  }
  if (!status.ok()) {  // a full disk or a read-only folder costs the log, not the job
    streams_.back().sink->write(fmt::format("[launch] {} {}: {}\n",
                                            log_path_,
                                            log_ ? "ends here" : "is not written",
                                            status.failure().what));
    log_.close();
    log_path_.clear();
  }
}

void Rank::give_out(Stream& stream, std::string_view bytes) {
  const bool terminal = stream.sink->terminal();
  std::string text;
  stream.lines.add(bytes, [&](std::string_view line) {
    tail_.add(line);
    if (!shown_) {
      return;
    }
    last_sink_ = stream.sink;
    text += prefix_;
    text += terminal ? after_last_redraw(line) : line;
    text += '\n';
  });
  stream.sink->write(text);
  if (terminal) {
    stream.lines.drop_redrawn();
    if (number_ == 0 && shown_) {  // the one rank that may leave a line unfinished for all to see
      const std::string_view live = after_last_redraw(stream.lines.unfinished());
      stream.sink->set_live(live.empty() ? std::string() : prefix_ + std::string(live));
    }
  }
}

void Rank::finish_lines(Stream& stream) {
  stream.lines.finish([&](std::string_view line) {
    tail_.add(line);
    if (!shown_) {
      return;
    }
    last_sink_ = stream.sink;
    stream.sink->set_live("");
    stream.sink->write(
        fmt::format("{}{}\n", prefix_, stream.sink->terminal() ? after_last_redraw(line) : line));
  });
}

std::string Rank::last_words(const Sink& where) const {
  std::string words;
  if (last_sink_ == &where) {
    for (const std::string& line : tail_.lines()) {
      words += without_time(line);
      words += '\n';
    }
  }
  return words;
}

bool Rank::read_once(Stream& stream) {
  if (!stream.fd) {
    return false;
  }
  static thread_local std::string chunk(kChunk, '\0');
  const ssize_t got = ::read(stream.fd.get(), chunk.data(), chunk.size());
  if (got > 0) {
    const std::string_view bytes(chunk.data(), static_cast<size_t>(got));
    log(bytes);
    give_out(stream, bytes);
    return true;
  }
  if (got < 0 && errno == EINTR) {
    return true;
  }
  if (got == 0 || errno != EAGAIN) {
    finish_lines(stream);
    stream.fd.close();
  }
  return false;
}

void Rank::forward(int fd) {
  for (Stream& stream : streams_) {
    for (int i = 0; stream.fd.get() == fd && i < kChunksPerTurn && read_once(stream); ++i) {
    }
  }
}

void Rank::forward_rest() {
  for (Stream& stream : streams_) {
    // Bounded: a process that the rank left behind may write for ever.
    for (int i = 0; i < 2 * kChunksPerTurn && read_once(stream); ++i) {
    }
    finish_lines(stream);
  }
}

std::optional<RankEnd> Rank::reap() {
  const Result<std::optional<os::Exit>> exit = process_.try_wait();
  if (reaped_ || !exit.ok() || !*exit) {
    return std::nullopt;
  }
  reaped_ = true;
  const auto now = std::chrono::steady_clock::now();
  return RankEnd{.rank = number_,
                 .pid = process_.pid(),
                 .exit = **exit,
                 .at = now,
                 .ran = now - started_,
                 .asked_to_stop = asked_to_stop_};
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
