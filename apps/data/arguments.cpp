#include "apps/data/arguments.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "argosy/base/error.h"

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
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UsageError(where,
                     fmt::format("{} is there and cannot be read: {}. Only {} is overwritten. "
                                 "Choose another name, or remove it first.",
                                 path,
                                 errno_message(errno),
                                 kind));
  }
  std::string begin(magic.size(), '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  if (!begin.empty() && begin != magic) {
    throw UsageError(where,
                     fmt::format("{} is there and is not {}: nothing else is overwritten. Choose "
                                 "another name, or remove it first.",
                                 path,
                                 kind));
  }
}

}  // namespace argosy::datatool
