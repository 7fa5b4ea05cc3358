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
  Sink* sink = nullptr;                  ///< a sink of the launcher; always set, for messages
  bool shown = true;                     ///< false: only the file gets it
  std::shared_ptr<LogFile> file{};       ///< nullptr: none; both streams may share one
  std::shared_ptr<LineFilter> filter{};  ///< shared by all ranks; nullptr: none
};

/// Takes what one rank prints. It copies it to the launcher's streams, line by line with a prefix,
/// and to files, and keeps the last lines for a report. Passive: the loop calls it when poll() says
/// that there is something to read.
class RankOutput final {
 public:
  struct Start {
    std::string prefix{};  ///< before each line that is shown: "[rank 3] "
    std::string color{};   ///< color of the prefix on a terminal: "\x1b[36m"; "": none
    bool live = false;     ///< it may leave an unfinished line (a progress bar) on a terminal
    Route out{};
    Route err{};
    int rank = 0;
    CombinedLog* combined = nullptr;  ///< also gets every line of both streams
  };
  /// `out_fd` and `err_fd`: our ends of the rank's pipes, which do not block.
  RankOutput(const Start& start, os::UniqueFd out_fd, os::UniqueFd err_fd);

  /// Returns the open streams whose reader takes more, for poll().
  [[nodiscard]] std::vector<int> fds() const;
  /// Copies what stream `fd` has ready, at most a few hundred kilobytes, so that no rank starves
  /// the others.
  void forward(int fd);
  /// Copies everything that is there and passes on an unfinished last line. The streams stay open
  /// if a process that the rank left behind may still write.
  void forward_rest();

  [[nodiscard]] std::vector<std::string> last_lines() const { return tail_.lines(); }
  /// Returns its last lines without their times. "" when it wrote none, when the last one did not
  /// go to `where`, or when it came long before `end` and so is not about it.
  [[nodiscard]] std::string last_words(const Sink& where,
                                       std::chrono::steady_clock::time_point end) const;
  /// Returns the files that were written: "a.log", "out.log and err.log" or "".
  [[nodiscard]] std::string log_paths() const;
  /// True if a file lacks something that the rank wrote.
  [[nodiscard]] bool logs_cut() const;
  /// True if it wrote to standard error and the launcher showed it.
  [[nodiscard]] bool errors_shown() const { return streams_[1].printed && streams_[1].route.shown; }

 private:
  struct Stream {
    os::UniqueFd fd{};
    Route route{};
    LineBuffer lines{};
    bool printed = false;  ///< it has printed something
  };
  /// Reads once. False when nothing more is there now.
  bool read_once(Stream& stream);
  void give_out(Stream& stream, std::string_view bytes);
  void finish_lines(Stream& stream);
  /// Adds the line as it is shown, with its prefix.
  void add_line(std::string& text, const Stream& stream, std::string_view line) const;

  struct Texts;
  /// The copies of one whole line, besides the shown one.
  class Copies;

  /// Returns time and rank as they stand before each line of the combined log. "": there is no such
  /// log.
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
