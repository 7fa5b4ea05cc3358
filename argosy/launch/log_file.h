#pragma once

#include <string>
#include <string_view>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::launch {

/// A file that takes what a rank prints, every byte. Made, with its folder, at the first byte; one
/// of a former run that is to be empty goes at once.
/// A full disk or a read-only folder costs the file, not the job.
class LogFile final {
 public:
  enum class Start { kEmpty, kAtTheEnd };  ///< of a file that is there already
  LogFile(std::string path, Start start);

  /// "" or, once, why this file ends here or was not made: a line for the user.
  [[nodiscard]] std::string write(std::string_view bytes);
  /// Has it been written, whole so far? Then its path, else "".
  [[nodiscard]] std::string path() const { return file_ ? path_ : ""; }
  /// Are bytes missing?
  [[nodiscard]] bool cut() const { return over_; }

 private:
  [[nodiscard]] Status open();

  std::string path_;
  bool over_ = false;
  os::UniqueFd file_{};
};

}  // namespace argosy::launch
