#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "argosy/launch/log_file.h"

namespace argosy::launch {

/// A file of the lines that all ranks of a node print, in the order in which the launcher read
/// them. Each line begins with the time of reading and its rank:
///
///     2026-11-20 15:04:05.123456 rank 3 out| epoch 2: loss 0.31
///
/// `argosy logs` reads it back.
class CombinedLog final {
 public:
  explicit CombinedLog(std::string path) : file_(std::move(path), LogFile::Start::kEmpty) {}

  static constexpr size_t kTimeLength =
      26;  ///< characters of the time at the beginning of each line

  /// Returns "2026-11-20 15:04:05.123456 " in local time.
  [[nodiscard]] std::string stamp(std::chrono::system_clock::time_point now);
  /// Writes whole lines. Returns "" or, once, a line for the user that says why the file ends here.
  [[nodiscard]] std::string write(std::string_view lines) { return file_.write(lines); }
  [[nodiscard]] std::string path() const { return file_.path(); }
  [[nodiscard]] bool cut() const { return file_.cut(); }

 private:
  LogFile file_;
  int64_t second_ = -1;     ///< the second that `day_time_` names
  std::string day_time_{};  ///< "2026-11-20 15:04:05"
};

}  // namespace argosy::launch
