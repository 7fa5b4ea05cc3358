#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace argosy::runs {

/// Makes the folder and those above it. Errors: DataError "runs.write" with path.
void make_folder(const std::string& folder);

/// Replaces the text of a file. The file holds either the new text whole or still the old one,
/// because it is written beside it and then renamed. It is not synced to the disk: a page is not
/// worth the wait and is written again soon.
/// Errors: DataError "runs.write" with path.
void replace_file(const std::string& path, std::string_view text);

/// Returns the bytes of a regular file, or nullopt if there is none or it has more than `most`.
[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path, size_t most);

/// Returns at most `most` bytes from `offset`.
[[nodiscard]] std::string read_piece(const std::string& path, int64_t offset, size_t most);

/// Returns the size of a regular file, or -1 for anything else.
[[nodiscard]] int64_t file_size(const std::string& path);

}  // namespace argosy::runs
