#include "apps/data/source_argument.h"

#include <fmt/format.h>

#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/datasets/fetch.h"
#include "argosy/datasets/row.h"

namespace argosy::datatool {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<datasets::Source> open_named(const datasets::Row& set, const std::string& path) {
  std::error_code error;
  if (!path.empty()) {
    return datasets::open(set.name, path);
  }
  const std::string folder = datasets::folder_of(set.name);
  if (!fs::exists(folder, error)) {
    throw DataError(
        "datatool.open",
        fmt::format("{} is not there. {}",
                    set.name,
                    set.instead.empty() ? fmt::format("To bring it: argosy data fetch {}", set.name)
                                        : set.instead),
        {folder});
  }
  return datasets::open(set.name, folder);
}

}  // namespace

std::unique_ptr<datasets::Source> open_argument(const std::string& what, const std::string& path) {
  if (const datasets::Row* set = datasets::find_row(what)) {
    return open_named(*set, path);
  }
  std::error_code error;
  if (path.empty() && what.find('/') != std::string::npos && !fs::exists(what, error)) {
    throw DataError("datatool.open", "No such file or folder", {what});
  }
  if (!path.empty() || !fs::exists(what, error)) {
    (void)datasets::row_of(what);  // says which name was meant
  }
  const std::string set = datasets::recognise(what);
  if (set.empty()) {
    throw UsageError(
        "datatool.open",
        fmt::format("{}: neither its name nor its content says what it is. Give the set's name "
                    "before it: argosy data info NAME {}",
                    what,
                    what));
  }
  return datasets::open(set, what);
}

}  // namespace argosy::datatool
