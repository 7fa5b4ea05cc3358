#include "argosy/datasets/files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "argosy/base/error.h"

namespace argosy::datasets {

namespace fs = std::filesystem;

std::string find_file(const std::string& path, const std::vector<std::string>& names) {
  std::error_code error;
  const fs::path folder =
      fs::is_directory(path, error) ? fs::path(path) : fs::path(path).parent_path();
  for (const std::string& name : names) {
    if (fs::is_regular_file(folder / name, error)) {
      return (folder / name).string();
    }
  }
  return "";
}

std::string need_file(const std::string& path, const std::vector<std::string>& names) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw DataError("datasets.open", "is not there", {path});
  }
  std::string found = find_file(path, names);
  if (found.empty()) {
    throw DataError("datasets.open",
                    fmt::format("expected {} {}, which {} not there",
                                fmt::join(names, " or "),
                                fs::is_directory(path, error) ? "in it" : "beside it",
                                names.size() == 1 ? "is" : "are"),
                    {path});
  }
  return found;
}

std::string file_or_in_folder(const std::string& path, const std::vector<std::string>& names) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? path : need_file(path, names);
}

}  // namespace argosy::datasets
