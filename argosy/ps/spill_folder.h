#pragma once

#include <string>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"

namespace argosy::ps {

/// The disk to which rows go does not take them, or does not give them back. The message names the
/// folder and says what to do.
class DiskError final : public Error {
 public:
  /// Its type as another process learns it.
  static constexpr const char* kType = "argosy::ps::DiskError";
  static constexpr const char* kMakeRoom =
      "Free space there, name another folder in spill_directory, or raise memory_limit";
  static constexpr const char* kResume =
      "What it held is lost: start again from the last checkpoint, on another disk";

  /// "FOLDER: cannot WHAT: WHY. ADVICE"
  DiskError(const std::string& folder,
            const std::string& what,
            const std::string& why,
            const char* advice = kMakeRoom);
};

/// A folder that this process alone uses, and that goes with this object. It is locked as long:
/// those that killed processes have left in the same directory are found by their free locks, and
/// removed when the next one is made.
class SpillFolder final {
 public:
  /// `directory`: where it is made, and made itself if needed; empty: the system's folder for
  /// temporary files. Errors: DiskError.
  explicit SpillFolder(const std::string& directory);
  ~SpillFolder();
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;
  SpillFolder(SpillFolder&&) = delete;
  SpillFolder& operator=(SpillFolder&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  os::UniqueFd lock_{};
};

}  // namespace argosy::ps
