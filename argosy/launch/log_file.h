#pragma once

#include <string>
#include <string_view>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::launch {

/// A file that receives every byte that a rank prints. The file and its folder are made at the
/// first byte. A former file is deleted at once if the log starts empty. A full disk or a read-only
/// folder costs the file, not the job.
class LogFile final {
 public:
  enum class Start { kEmpty, kAtTheEnd };  ///< in a file that exists already
  LogFile(std::string path, Start start);

  /// Writes `bytes`. Returns "" or, once, a line for the user that says why this file ends here or
  /// was not made.
  [[nodiscard]] std::string write(std::string_view bytes);
  /// Returns its path if it exists and is whole so far, else "".
  [[nodiscard]] std::string path() const { return file_ ? path_ : ""; }
  /// True if bytes are missing.
  [[nodiscard]] bool cut() const { return over_; }

 private:
  [[nodiscard]] Status open();

  std::string path_;
  bool over_ = false;
  os::UniqueFd file_{};
};

}  // namespace argosy::launch
