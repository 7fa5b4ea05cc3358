#pragma once

#include <optional>
#include <string>
#include <vector>

namespace argosy::launch {

/// A rank's own words about its end.
struct ErrorNote {
  std::string message{};  ///< "RuntimeError: shapes differ"; may have several lines
  std::string stack{};    ///< may be empty
  std::string path{};     ///< path of the file that holds this note
};

/// Prepares for a rank's note: creates the folder and removes a former note.
void prepare_error_file(const std::string& path);

/// Reads a rank's note. A message may also be plain text. nullopt: the rank wrote none, or it does
/// not have torchrun's form.
/// Source: PyTorch's torch/distributed/elastic/multiprocessing/errors; os/crash_handler.h writes
/// the same form.
[[nodiscard]] std::optional<ErrorNote> read_error_file(const std::string& path);

/// Returns the first line of the uncaught exception of a rank that ended by SIGABRT:
/// "std::runtime_error: my file is missing". It is taken from the rank's note, else from what the
/// C++ runtime wrote among its last lines. "": there was no exception.
[[nodiscard]] std::string exception_of(const std::optional<ErrorNote>& note,
                                       const std::vector<std::string>& last_lines);

}  // namespace argosy::launch
