#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace argosy::runs {

/// Errors: DataError "runs.write" with path.
void make_folder(const std::string& folder);

/// The file has the new text whole, or still the old: written beside it, then renamed. Not brought
/// to the disk: what a page shows is not worth the wait, and comes again.
/// Errors: DataError "runs.write" with path.
void replace_file(const std::string& path, std::string_view text);

/// The bytes of a regular file; nullopt where there is none, or one with more than `most`.
[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path, size_t most);

/// At most `most` bytes from `offset` on; empty where there is nothing.
[[nodiscard]] std::string read_piece(const std::string& path, int64_t offset, size_t most);

/// -1: no regular file.
[[nodiscard]] int64_t file_size(const std::string& path);

}  // namespace argosy::runs
