#include "argosy/launch/sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "argosy/base/strings.h"

namespace argosy::launch {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

/// The part of `text` that fits, one column less than all; a wrapped line could not be erased. What
/// is cut off may have ended a color.
std::string fit(std::string_view text, int columns) {
  constexpr std::string_view kPlain = "\x1b[0m";
  if (columns <= 1) {
    return std::string(text);
  }
  std::string shown(strings::first_columns(text, static_cast<size_t>(columns) - 1));
  if (shown.size() < text.size() && shown.find('\x1b') != std::string::npos) {
    shown += kPlain;
  }
  return shown;
}

/// Takes everything at once; in pieces of PIPE_BUF, each behind a poll(), they would be most of the
/// calls.
bool is_dev_null(const struct stat& info) {
  struct stat null {};
  return S_ISCHR(info.st_mode) && ::stat("/dev/null", &null) == 0 && null.st_rdev == info.st_rdev;
}

}  // namespace

bool same_target(int a, int b) {
  struct stat first {};
  struct stat second {};
  if (::fstat(a, &first) != 0 || ::fstat(b, &second) != 0) {
    return false;
  }
  // A terminal has many device files (/dev/tty, /dev/pts/3, a container's copy) but one number.
  return S_ISCHR(first.st_mode) ? S_ISCHR(second.st_mode) && first.st_rdev == second.st_rdev
                                : first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Sink::Sink(int fd) : fd_(fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    broken_ = true;  // closed by whoever started us
    return;
  }
  terminal_ = ::isatty(fd) == 1;
  always_ready_ = S_ISREG(info.st_mode) || S_ISBLK(info.st_mode) || is_dev_null(info);
  if (always_ready_) {
    return;
  }
  // O_NONBLOCK on `fd` itself would change it for everybody who shares it (the shell, the other
  // commands of a pipeline). A second opening of the same pipe or terminal is ours alone.
  if (S_ISFIFO(info.st_mode) || terminal_) {
    Result<os::UniqueFd> own =
        os::open_file(fmt::format("/proc/self/fd/{}", fd), O_WRONLY | O_NONBLOCK | O_NOCTTY);
    if (own.ok()) {
      own_ = *std::move(own);
      fd_ = own_.get();
      return;
    }
  }
  most_ = PIPE_BUF;  // what a blocking pipe takes without blocking once poll() says it is ready
}

int Sink::columns() const {
  winsize size{};
  return terminal_ && ::ioctl(fd_, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void Sink::write(std::string_view lines) {
  if (broken_ || lines.empty()) {
    return;
  }
  if (live_drawn_) {
    pending_ += kEraseLine;
    live_drawn_ = false;
    live_changed_ = !live_.empty();
  }
  pending_ += lines;
}

void Sink::set_live(std::string line) {
  if (terminal_ && line != live_) {
    live_ = std::move(line);
    live_changed_ = true;
  }
}

void Sink::draw_live() {
  if (!live_changed_ || broken_ || full()) {
    return;
  }
  live_changed_ = false;
  if (live_drawn_) {
    pending_ += kEraseLine;
  }
  pending_ += fit(live_, columns());
  live_drawn_ = !live_.empty();
}

void Sink::flush() {
  draw_live();
  while (pending() && !broken_) {
    if (most_ == PIPE_BUF) {
      const Result<bool> ready = os::wait_ready(fd_, POLLOUT, Deadline::after({}));
      if (!ready.ok() || !*ready) {
        break;
      }
    }
    const size_t size = std::min(most_, pending_.size() - sent_);
    const ssize_t put = ::write(fd_, pending_.data() + sent_, size);
    if (put >= 0) {
      sent_ += static_cast<size_t>(put);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      broken_ = true;  // EPIPE, EIO of a closed terminal, ENOSPC
      error_ = errno;
    }
  }
  if (broken_ || !pending()) {
    pending_.clear();
    sent_ = 0;
  } else if (sent_ >= kFull) {
    pending_.erase(0, sent_);
    sent_ = 0;
  }
}

}  // namespace argosy::launch
