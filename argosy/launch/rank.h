#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/launch/line_buffer.h"
#include "argosy/launch/report.h"
#include "argosy/launch/sink.h"
#include "argosy/os/fd.h"
#include "argosy/os/subprocess.h"

namespace argosy::launch {

/// One running rank: its process, its process group and its output. Passive, like os::Subprocess:
/// the agent's loop calls it when poll() says that there is something to do.
class Rank final {
 public:
  struct Start {
    int number = 0;
    std::vector<std::string> command{};
    std::vector<std::string> env{};
    int stdin_fd = -1;
    int guard_fd = -1;  ///< see Guard::pid_fd()
    std::string
        log_path{};  ///< made, with its folder, when the rank writes something; empty: no file
    std::string prefix{};  ///< before each line that is shown: "[rank 3] "
    bool shown = true;     ///< false: its output goes to the log file only
    Sink* out = nullptr;   ///< may be the same as err
    Sink* err = nullptr;
  };
  /// Errors: those of Subprocess::spawn, or the log file cannot be made.
  [[nodiscard]] static Result<Rank> start(const Start& start);

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  [[nodiscard]] bool running() const { return process_.running(); }
  [[nodiscard]] int pidfd() const { return process_.pidfd(); }
  /// The streams that are still open, for poll().
  [[nodiscard]] std::vector<int> stream_fds() const;

  /// Copies what stream `fd` has ready to its sink and to the log; at most a few hundred kilobytes,
  /// so that no rank starves the others.
  void forward(int fd);
  /// Copies everything that is there and gives out an unfinished last line. The streams stay open
  /// where a process that the rank left behind may still write.
  void forward_rest();

  /// How it ended, if it has.
  [[nodiscard]] std::optional<RankEnd> reap();
  /// Does anything of its process group still live?
  [[nodiscard]] bool group_alive();
  /// Asks it to stop: the end of a rank that still ran is not its own from here on.
  void signal_group(int signal);
  void signal_process(int signal) { (void)process_.signal(signal); }
  void abandon() { process_.abandon(); }

  [[nodiscard]] std::vector<std::string> last_lines() const { return tail_.lines(); }
  /// Its last lines without their times; "" when it wrote none, or the last not to `where`.
  [[nodiscard]] std::string last_words(const Sink& where) const;
  /// Empty when there is no file.
  [[nodiscard]] std::string log_path() const { return log_ ? log_path_ : ""; }

 private:
  struct Stream {
    os::UniqueFd fd{};
    Sink* sink = nullptr;
    LineBuffer lines{};
  };

  Rank(const Start& start, os::Subprocess process);
  /// One read; false when nothing more is there now.
  bool read_once(Stream& stream);
  void give_out(Stream& stream, std::string_view bytes);
  void finish_lines(Stream& stream);
  void log(std::string_view bytes);
  [[nodiscard]] Status open_log();

  int number_;
  std::string prefix_;
  bool shown_;
  os::Subprocess process_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool group_gone_ = false;
  bool reaped_ = false;
  bool asked_to_stop_ = false;
  std::vector<Stream> streams_{};
  Tail tail_{};
  const Sink* last_sink_ = nullptr;  ///< where the last line went
  std::string log_path_{};
  os::UniqueFd log_{};
};

}  // namespace argosy::launch
