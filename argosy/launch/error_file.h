#pragma once

#include <optional>
#include <string>
#include <vector>

namespace argosy::launch {

/// What a rank said itself about its end.
struct ErrorNote {
  std::string message{};  ///< "RuntimeError: shapes differ"; may have several lines
  std::string stack{};    ///< may be empty
  std::string path{};     ///< of the file that says so
};

/// Makes the way free for a rank's note: the folder is there, and no former one.
void prepare_error_file(const std::string& path);

/// nullopt: the rank wrote none, or nothing in torchrun's form. A message may also be plain text.
/// Source: PyTorch's torch/distributed/elastic/multiprocessing/errors; os/crash_handler.h writes
/// it.
[[nodiscard]] std::optional<ErrorNote> read_error_file(const std::string& path);

/// The exception that nobody caught, of a rank that ended by SIGABRT: "std::runtime_error: my file
/// is missing", by what the rank said itself, else by what the C++ runtime writes among its last
/// lines. The first line of it; "": it was none.
[[nodiscard]] std::string exception_of(const std::optional<ErrorNote>& note,
                                       const std::vector<std::string>& last_lines);

}  // namespace argosy::launch
