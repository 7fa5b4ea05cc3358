#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "argosy/launch/sink.h"

namespace argosy::launch {

/// After a signal the user or the system waits for the end, not for a reader that pauses.
inline constexpr std::chrono::milliseconds kPatienceOnceStopped{500};

/// The launcher's standard output and standard error. They are one sink if both lead to the same
/// terminal, pipe or file, else two.
class Output final {
 public:
  /// The caller still owns the descriptors.
  Output(int out_fd, int err_fd);
  ~Output() { flush(); }  ///< the text before an exception explains it
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  Output(Output&&) = delete;
  Output& operator=(Output&&) = delete;

  Sink& out() { return out_; }
  Sink& err() { return own_err_ ? *own_err_ : out_; }
  [[nodiscard]] bool shared() const { return !own_err_; }
  /// Prints the launcher's own words, in whole lines.
  void say(const std::string& text) { err().write(text); }

  /// True if an error, such as a full disk, ended standard output. False if its reader chose to
  /// miss the rest.
  [[nodiscard]] bool cut() const { return out_.cut(); }
  /// The same as cut() for standard error.
  [[nodiscard]] bool err_cut() const { return own_err_ ? own_err_->cut() : cut(); }

  [[nodiscard]] bool pending() const;
  void flush();

  /// Waits until the readers have taken everything. Gives up when they take nothing for `patience`,
  /// or when `stop` returns true; it is asked first, and then each time that `wake_fd` is readable.
  void hand_over(std::chrono::milliseconds patience,
                 int wake_fd,
                 const std::function<bool()>& stop);

 private:
  [[nodiscard]] size_t unsent() const;

  Sink out_;
  std::optional<Sink> own_err_{};
};

}  // namespace argosy::launch
