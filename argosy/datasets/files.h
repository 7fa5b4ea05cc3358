#pragma once

#include <string>
#include <vector>

namespace argosy::datasets {

/// The first of `names` that is in the folder `path` (or beside the file `path`), with its path;
/// empty: none.
[[nodiscard]] std::string find_file(const std::string& path, const std::vector<std::string>& names);

/// The same for a file that must be there. Errors: DataError naming the path and the names.
[[nodiscard]] std::string need_file(const std::string& path, const std::vector<std::string>& names);

/// `path` where it is a file, whatever its name; else need_file().
[[nodiscard]] std::string file_or_in_folder(const std::string& path,
                                            const std::vector<std::string>& names);

}  // namespace argosy::datasets
