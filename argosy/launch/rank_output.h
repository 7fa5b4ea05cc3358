#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/launch/combined_log.h"
#include "argosy/launch/line_buffer.h"
#include "argosy/launch/line_filter.h"
#include "argosy/launch/log_file.h"
#include "argosy/launch/sink.h"
#include "argosy/os/fd.h"

namespace argosy::launch {

/// Where one stream of a rank goes.
struct Route {
  Sink* sink = nullptr;                  ///< of the launcher; always there, for messages
  bool shown = true;                     ///< false: only the file gets it
  std::shared_ptr<LogFile> file{};       ///< nullptr: none; both streams may share one
  std::shared_ptr<LineFilter> filter{};  ///< of all ranks; nullptr: none
};

/// What one rank prints: copied to the launcher's streams, line by line and with a prefix, and to
/// files; the last lines are kept for a report. Passive: the loop calls it when poll() says that
/// there is something to read.
class RankOutput final {
 public:
  struct Start {
    std::string prefix{};  ///< before each line that is shown: "[rank 3] "
    std::string color{};   ///< of the prefix on a terminal: "\x1b[36m"; "": none
    bool live = false;     ///< may leave an unfinished line (a progress bar) on a terminal
    Route out{};
    Route err{};
    int rank = 0;
    CombinedLog* combined = nullptr;  ///< gets every line of both streams too
  };
  /// `out_fd` and `err_fd`: our ends of the rank's pipes, which do not block.
  RankOutput(const Start& start, os::UniqueFd out_fd, os::UniqueFd err_fd);

  /// The streams that are open and whose reader takes more, for poll().
  [[nodiscard]] std::vector<int> fds() const;
  /// Copies what stream `fd` has ready; at most a few hundred kilobytes, so that no rank starves
  /// the others.
  void forward(int fd);
  /// Copies everything that is there and gives out an unfinished last line. The streams stay open
  /// where a process that the rank left behind may still write.
  void forward_rest();

  [[nodiscard]] std::vector<std::string> last_lines() const { return tail_.lines(); }
  /// Its last lines without their times; "" when it wrote none, the last not to `where`, or that
  /// long before `end`: then they are not about it.
  [[nodiscard]] std::string last_words(const Sink& where,
                                       std::chrono::steady_clock::time_point end) const;
  /// The files that were written: "a.log", "out.log and err.log", "".
  [[nodiscard]] std::string log_paths() const;
  /// Is there a file that lacks what the rank wrote to it?
  [[nodiscard]] bool logs_cut() const;
  /// Has it written to standard error what is shown there?
  [[nodiscard]] bool errors_shown() const { return streams_[1].printed && streams_[1].route.shown; }

 private:
  struct Stream {
    os::UniqueFd fd{};
    Route route{};
    LineBuffer lines{};
    bool printed = false;  ///< something, ever
  };
  /// One read; false when nothing more is there now.
  bool read_once(Stream& stream);
  void give_out(Stream& stream, std::string_view bytes);
  void finish_lines(Stream& stream);
  /// Adds the line as it is shown, with its prefix.
  void add_line(std::string& text, const Stream& stream, std::string_view line) const;

  struct Texts;
  /// What becomes of one whole line, besides being shown.
  class Copies;

  /// Time and rank, as they stand before each line of the combined log; "": there is none.
  [[nodiscard]] std::string combined_start(const Stream& stream);

  std::string prefix_;
  std::string colored_prefix_;
  bool live_;
  std::array<Stream, 2> streams_;
  Tail tail_{};
  const Sink* last_sink_ = nullptr;  ///< where the last line went
  std::chrono::steady_clock::time_point last_read_{};
  CombinedLog* combined_;
  std::array<std::string, 2> combined_prefix_{};  ///< "rank 3 out| "
};

}  // namespace argosy::launch
