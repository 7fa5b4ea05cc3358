#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "argosy/launch/log_file.h"

namespace argosy::launch {

/// What all ranks of a node print, line by line, in the order in which the launcher read it, each
/// with the time of that and its rank:
///
///     2026-11-20 15:04:05.123456 rank 3 out| epoch 2: loss 0.31
///
/// `argosy logs` reads it back.
class CombinedLog final {
 public:
  explicit CombinedLog(std::string path) : file_(std::move(path), LogFile::Start::kEmpty) {}

  static constexpr size_t kTimeLength = 26;  ///< of the time at the beginning of each line

  /// "2026-11-20 15:04:05.123456 ", in local time.
  [[nodiscard]] std::string stamp(std::chrono::system_clock::time_point now);
  /// Whole lines. "" or, once, why the file ends here: a line for the user.
  [[nodiscard]] std::string write(std::string_view lines) { return file_.write(lines); }
  [[nodiscard]] std::string path() const { return file_.path(); }
  [[nodiscard]] bool cut() const { return file_.cut(); }

 private:
  LogFile file_;
  int64_t second_ = -1;     ///< that `day_time_` stands for
  std::string day_time_{};  ///< "2026-11-20 15:04:05"
};

}  // namespace argosy::launch
