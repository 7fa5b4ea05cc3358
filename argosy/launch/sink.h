#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include "argosy/os/fd.h"

namespace argosy::launch {

/// Takes the launcher's output for standard output, standard error, or the terminal that is both.
///
///     sink.write("[rank 1] step 3\n");
///     sink.set_live("[rank 0]  47% [====>     ]");   // terminals only
///     sink.flush();
///
/// Never blocks: what the reader does not take yet waits in memory. When full() returns true, stop
/// reading from the ranks. A reader that went away costs its output and nothing else.
class Sink final {
 public:
  /// The caller still owns `fd`.
  explicit Sink(int fd);

  /// Appends whole lines. On a terminal they appear above the live line.
  void write(std::string_view lines);
  /// Sets the unfinished line at the bottom of a terminal; "": none. It has no effect elsewhere.
  void set_live(std::string line);

  /// Writes as much as the reader takes now.
  void flush();

  [[nodiscard]] bool terminal() const { return terminal_; }
  [[nodiscard]] int columns() const;  ///< width of the terminal; 0: not known
  [[nodiscard]] bool broken() const { return broken_; }
  /// True if an error broke it, and not a reader that chose to miss the rest.
  [[nodiscard]] bool cut() const { return broken_ && error_ != 0 && error_ != EPIPE; }
  [[nodiscard]] int error() const { return error_; }  ///< errno of the write that broke it, or 0
  [[nodiscard]] bool pending() const { return unsent() > 0; }
  [[nodiscard]] size_t unsent() const { return pending_.size() - sent_; }  ///< bytes
  [[nodiscard]] bool full() const { return unsent() >= kFull; }
  /// Returns the descriptor to poll for POLLOUT while pending(). -1 for a file and for /dev/null,
  /// which always take everything.
  [[nodiscard]] int poll_fd() const { return always_ready_ ? -1 : fd_; }

 private:
  static constexpr size_t kFull = size_t{1} << 20;

  void draw_live();

  os::UniqueFd own_{};
  int fd_;
  size_t most_ = size_t{1} << 20;  ///< bytes per write(2)
  bool terminal_ = false;
  bool always_ready_ = false;
  bool broken_ = false;
  int error_ = 0;
  std::string pending_{};
  size_t sent_ = 0;
  std::string live_{};
  bool live_changed_ = false;
  bool live_drawn_ = false;
};

/// True if both descriptors lead to one terminal, pipe or file. One Sink must then serve both, or
/// half a line of one could end up inside a line of the other.
[[nodiscard]] bool same_target(int a, int b);

}  // namespace argosy::launch
