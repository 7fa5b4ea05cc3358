#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

enum class FileState { kFine, kMissing, kDamaged };
[[nodiscard]] std::string_view to_string(FileState state);  ///< "fine", "missing", "damaged"

/// One file, compared with the published one.
struct CheckedFile {
  std::string path{};
  PublishedFile known{};
  FileState state = FileState::kMissing;
  int64_t bytes = 0;  ///< its size on disk
  std::string md5{};  ///< its MD5 on disk; empty if the length differs already
  /// What is wrong, unless it is fine: "expected 4542 bytes, got 17", "cannot open: …".
  std::string reason{};
};

/// Checks one file. A bad file throws nothing; one that cannot be read counts as damaged.
[[nodiscard]] CheckedFile check_file(const std::string& path, const PublishedFile& known);

/// The files of a set in a folder.
struct Verified {
  std::string set{};
  std::string folder{};
  std::vector<CheckedFile> files{};
  /// True if all files are fine. If one file is enough, true if at least one is there and none is
  /// damaged.
  [[nodiscard]] bool fine() const;
};

/// Checks a set's files in `folder` (empty: folder_of(name)) against the published sizes and MD5s.
/// Of alternatives it reports only those that are there, or the first if there is none.
/// Errors: UsageError for an unknown name, and for a set whose files nobody publishes.
[[nodiscard]] Verified verify(std::string_view name, const std::string& folder = "");
[[nodiscard]] Verified verify(const Row& set, const std::string& folder);

/// Checks a path without a name. For a folder it takes the set most of whose files are in it. For a
/// file it takes the published one with its MD5, or else with its name.
/// Errors: UsageError when there is no published file, or none of that name; DataError when it
/// cannot be read.
[[nodiscard]] Verified verify_path(const std::string& path);

}  // namespace argosy::datasets
