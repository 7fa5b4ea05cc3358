#include "argosy/datasets/row.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/env.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOpen = "datasets.open";

/// Errors: UsageError for an option that is set and that the set does not take.
void check_options(const Row& set, const OpenOptions& options) {
  const OpenOptions usual;
  for (const auto& [name, as_usual] : {std::pair("absent", options.absent == usual.absent),
                                       {"points", options.points == usual.points},
                                       {"splits", options.splits == usual.splits}}) {
    ARGOSY_CHECK(as_usual || takes(set, name), kOpen, "{} has no option .{}", set.name, name);
  }
}

}  // namespace

bool takes(const Row& set, std::string_view option) {
  return std::ranges::any_of(set.options, [&](const auto& one) { return one.first == option; });
}

std::shared_ptr<const Source> open(const Row& set, OpenOptions options) {
  check_options(set, options);
  const bool usual = options.path.empty();
  if (usual) {
    options.path = folder_of(set.name);
  }
  std::error_code error;
  if (!fs::exists(options.path, error) && (usual || !set.files.empty())) {
    throw DataError(
        kOpen,
        fmt::format("{}is not there. {}",
                    usual ? set.name + " " : "",
                    !set.instead.empty() ? set.instead
                                         : fmt::format("To bring it: argosy data fetch {}{}",
                                                       set.name,
                                                       usual ? "" : " --to " + options.path)),
        {options.path});
  }
  std::shared_ptr<const Source> source = set.open(options);
  const int64_t missing = source->about().missing;
  if (missing > 0 && options.absent == Absent::kError) {
    throw DataError(
        kOpen,
        fmt::format("{} of the {} samples that its index names are not there: it is a part of the "
                    "set, or a broken download. To bring all: argosy data fetch {} --replace. To "
                    "use those that are there: missing=skip behind --data, --skip_missing of a "
                    "program that has it, Absent::kSkip in code",
                    missing,
                    missing + source->size(),
                    set.name),
        {options.path});
  }
  return source;
}

namespace {

/// What was installed beside this program: the bundle has share/datasets, and so has Debian, which
/// writes names with hyphens.
std::optional<std::string> installed_folder(std::string name) {
  std::ranges::replace(name, '_', '-');
  std::error_code ignored;
  const fs::path folder = env::own_program().parent_path().parent_path() / "share/datasets" / name;
  return fs::is_directory(folder, ignored) ? std::optional(folder.string()) : std::nullopt;
}

}  // namespace

std::string folder_of(std::string_view name) {
  if (const auto home = env::get("ARGOSY_DATA_HOME")) {
    return (fs::path(*home) / name).string();
  }
  const auto home = env::get("HOME");
  const fs::path fetched = fs::path(home.value_or("")) / ".cache/argosy/data" / name;
  if (std::error_code ignored; !home || !fs::exists(fetched, ignored)) {
    if (const auto installed = installed_folder(std::string(name))) {
      return *installed;
    }
  }
  if (home) {
    return fetched.string();
  }
  throw ConfigError("datasets.home",
                    "no folder for data: neither HOME nor ARGOSY_DATA_HOME is set. Set one of "
                    "them, or give the folder");
}

}  // namespace argosy::datasets
