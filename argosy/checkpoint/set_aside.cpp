#include "argosy/checkpoint/set_aside.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "argosy/base/log.h"
#include "argosy/base/strings.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step-";

/// Named by step_name(), of a later step.
std::vector<fs::path> later_ones(const std::string& folder, int64_t step) {
  std::vector<fs::path> later;
  std::error_code error;  // a folder that is not there has none
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kStep) &&
        strings::parse_int(name.substr(kStep.size())).value_or(0) > step) {
      later.push_back(entry->path());
    }
  }
  return later;
}

}  // namespace

fs::path make_earlier_folder(const fs::path& folder, std::error_code& error) {
  for (int number = 1;; ++number) {
    fs::path made = folder / ("earlier-" + std::to_string(number));
    if (fs::create_directory(made, error) || error) {
      return made;
    }
  }
}

void set_aside_later(const std::string& folder, int64_t step) {
  const std::vector<fs::path> later = later_ones(folder, step);
  if (later.empty()) {
    return;
  }
  std::error_code error;
  const fs::path aside = make_earlier_folder(folder, error);
  for (const fs::path& one : later) {
    if (!error) {
      fs::rename(one, aside / one.filename(), error);
    }
  }
  if (error) {
    log::error(
        "[checkpoint.save] {}: cannot set aside the checkpoints of a later step than {}, of "
        "another "
        "training, which count as newer: {}",
        folder,
        step,
        error.message());
    return;
  }
  log::warn(
      "[checkpoint.save] {}: {} checkpoint{} of a later step than {}, at which this training "
      "begins, "
      "moved to {}. To go on from one of them that is whole: resume from it, or move it back",
      folder,
      later.size(),
      later.size() == 1 ? "" : "s",
      step,
      aside.string());
}

}  // namespace argosy::checkpoint
