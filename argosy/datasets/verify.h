#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

enum class FileState { kFine, kMissing, kDamaged };
[[nodiscard]] std::string_view to_string(FileState state);  ///< "fine", "missing", "damaged"

/// One file beside what was published of it.
struct CheckedFile {
  std::string path{};
  PublishedFile known{};
  FileState state = FileState::kMissing;
  int64_t bytes = 0;  ///< as it lies there
  std::string md5{};  ///< the same; empty where the length tells already that it is another
  /// In words, unless it is fine: "expected 4542 bytes, got 17", "cannot open: …".
  std::string reason{};
};

/// Looks at one file. Throws nothing for a bad file: one that cannot be read is damaged.
[[nodiscard]] CheckedFile check_file(const std::string& path, const PublishedFile& known);

/// What of a set lies in a folder.
struct Verified {
  std::string set{};
  std::string folder{};
  std::vector<CheckedFile> files{};
  /// All files are fine; where one is enough: at least one is there, and none is damaged.
  [[nodiscard]] bool fine() const;
};

/// Checks a set's files in `folder` (empty: folder_of(name)) against the published sizes and MD5s.
/// Of alternatives only those that are there are told, or the first where there is none.
/// Errors: UsageError for a name that is none or whose files nobody publishes.
[[nodiscard]] Verified verify(std::string_view name, const std::string& folder = "");
[[nodiscard]] Verified verify(const Row& set, const std::string& folder);

/// The same for a path without a name: of a folder, the set whose files it has most of is meant; of
/// a file, the published one of its MD5, or else of its name.
/// Errors: UsageError where no published file is there, or of that name; DataError: cannot be read.
[[nodiscard]] Verified verify_path(const std::string& path);

}  // namespace argosy::datasets
