#pragma once

#include <string>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

/// Returns the URLs from which a file of a set may come, in the order to try: <mirror>/<set>/<file>
/// for each mirror, or the published ones without a mirror. A mirror that is no URL is a folder.
/// Errors: UsageError for a mirror whose scheme is not http, https or file.
[[nodiscard]] std::vector<std::string> urls_of(const Row& set,
                                               const PublishedFile& file,
                                               const std::vector<std::string>& mirrors);

/// True if the URL names a file of this machine or of a mounted disk. Trying again does not help
/// there.
[[nodiscard]] bool is_local(const std::string& url);

/// Returns `mirrors`, or if it is empty those that ARGOSY_DATA_MIRROR names.
[[nodiscard]] std::vector<std::string> mirrors_or_default(const std::vector<std::string>& mirrors);

}  // namespace argosy::datasets
