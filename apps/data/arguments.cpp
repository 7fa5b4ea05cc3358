#include "apps/data/arguments.h"

#include <fmt/format.h>

#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"

namespace argosy::datatool {

void check_output(const char* where,
                  const std::string& path,
                  std::string_view magic,
                  const std::string& kind) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return;
  }
  if (!std::filesystem::is_regular_file(status)) {  // a pipe would wait for a writer
    throw UsageError(
        where,
        fmt::format("{} is {}: expected the name of {}, to write",
                    path,
                    std::filesystem::is_directory(status) ? "a folder" : "not a regular file",
                    kind));
  }
  const Result<std::string> begin = os::read_head(path, magic.size());
  if (!begin.ok()) {
    throw UsageError(where,
                     fmt::format("{} is there and cannot be read: {}. Only {} is overwritten. "
                                 "Choose another name, or remove it first.",
                                 path,
                                 errno_message(begin.failure().error_number),
                                 kind));
  }
  if (!begin->empty() && *begin != magic) {
    throw UsageError(where,
                     fmt::format("{} is there and is not {}: nothing else is overwritten. Choose "
                                 "another name, or remove it first.",
                                 path,
                                 kind));
  }
}

}  // namespace argosy::datatool
