#include "apps/data/source_argument.h"

#include <fmt/format.h>

#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"

namespace argosy::datatool {
namespace {

namespace fs = std::filesystem;

/// What is absent is told by the command, and no error.
std::shared_ptr<const datasets::Source> opened(const datasets::Row& set, const std::string& path) {
  const auto absent =
      datasets::takes(set, "absent") ? datasets::Absent::kSkip : datasets::Absent::kError;
  return datasets::open(set, {.path = path, .absent = absent});
}

}  // namespace

std::shared_ptr<const datasets::Source> open_argument(const std::string& what,
                                                      const std::string& path) {
  if (const datasets::Row* set = datasets::find_row(what)) {
    return opened(*set, path);
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
  return opened(datasets::row_of(set), what);
}

}  // namespace argosy::datatool
