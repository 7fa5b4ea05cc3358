#pragma once

#include <optional>
#include <string>

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

}  // namespace argosy::launch
