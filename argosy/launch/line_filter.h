#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/launch/log_file.h"

namespace argosy::launch {

/// Writes the lines of all ranks that contain one of `needles` to a file of their own. Source:
/// torchrun's --duplicate_stdout_filters.
class LineFilter final {
 public:
  LineFilter(std::vector<std::string> needles, const std::string& path)
      : needles_(std::move(needles)), file_(path, LogFile::Start::kEmpty) {}

  [[nodiscard]] bool wants(std::string_view line) const {
    return std::ranges::any_of(needles_, [&](const std::string& needle) {
      return line.find(needle) != std::string_view::npos;
    });
  }
  /// See LogFile::write().
  [[nodiscard]] std::string write(std::string_view lines) { return file_.write(lines); }

 private:
  std::vector<std::string> needles_;
  LogFile file_;
};

}  // namespace argosy::launch
