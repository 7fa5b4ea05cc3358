#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "argosy/os/fd.h"
#include "argosy/os/subprocess.h"

namespace argosy::test {

/// A real `argosy launch` under test, with everything that it and its ranks write.
///
/// Every process that it starts, directly or not, carries a mark in its environment, so that none
/// can hide: see survivors(). The destructor kills them all.
class Launched final {
 public:
  struct Options {
    std::vector<std::string> args{};  ///< after `argosy launch`
    /// Instead: a script for bash that runs the launcher by `exec "$0" launch`.
    std::string shell{};
    std::vector<std::string> env{};  ///< on top of this process's own
    bool with_input = false;         ///< standard input is a pipe, see input(); else it is empty
    int terminal = -1;               ///< becomes standard output instead of a pipe
  };
  explicit Launched(Options options);
  /// `ranks` ranks of a shell script.
  Launched(int ranks, const std::string& script, std::vector<std::string> more_options = {});
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;
  Launched(Launched&&) = delete;
  Launched& operator=(Launched&&) = delete;

  /// Reads until the end of both streams and of the launcher; what a shell would show as $?.
  int wait();
  /// Reads until standard output holds `text` `times` times. False: it ended without.
  bool wait_for_output(const std::string& text, int times = 1);
  /// The same for standard error.
  bool wait_for_error(const std::string& text);

  void signal(int number) { (void)process_->signal(number); }
  [[nodiscard]] int pid() const { return process_->pid(); }
  /// Closes our end of standard output, as `| head -1` does.
  void stop_reading() { out_.fd.close(); }
  /// Leaves our end open and unread from now on, as a pager does that waits for its user.
  void pause_reading() { paused_ = std::move(out_.fd); }
  os::UniqueFd& input() { return input_; }
  const std::string& out() const { return out_.text; }
  /// Without the table that the launcher begins with; see all_err().
  const std::string& err() const;
  const std::string& all_err() const { return err_.text; }

  /// Processes with our mark, in words, after waiting for them to go.
  std::vector<std::string> survivors();
  /// False: it does not come to have that many children that have ended.
  bool wait_for_zombies(int children);
  /// Its child of that name; 0: none.
  [[nodiscard]] pid_t child_named(const std::string& name) const;

 private:
  struct Stream {
    os::UniqueFd fd{};
    std::string text{};
  };
  bool wait_for(Stream& stream, const std::string& text, int times);
  /// Reads what there is, waiting for some; false when both streams have ended.
  bool read_more();
  std::vector<pid_t> marked() const;
  std::vector<pid_t> children() const;

  std::string mark_;
  os::UniqueFd input_{};
  Stream out_{};
  os::UniqueFd paused_{};
  Stream err_{};
  mutable std::string err_without_table_{};
  std::optional<os::Subprocess> process_{};
};

/// The state letter of /proc/<pid>/stat: R (running), S (sleeping), T (stopped) … '?': no process.
char state_of(pid_t pid);

/// Lines of `text` that start with `prefix`, without it.
std::vector<std::string> lines_of(const std::string& text, const std::string& prefix);

}  // namespace argosy::test
