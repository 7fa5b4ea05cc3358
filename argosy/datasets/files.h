#pragma once

#include <string>
#include <vector>

namespace argosy::datasets {

/// Returns the path of the first of `names` that is in the folder `path` or beside the file `path`.
/// Empty: none is.
[[nodiscard]] std::string find_file(const std::string& path, const std::vector<std::string>& names);

/// Returns the same for a file that must be there. Errors: DataError naming the path and the names.
[[nodiscard]] std::string need_file(const std::string& path, const std::vector<std::string>& names);

/// Returns `path` if it is a file of any name, else need_file().
[[nodiscard]] std::string file_or_in_folder(const std::string& path,
                                            const std::vector<std::string>& names);

}  // namespace argosy::datasets
