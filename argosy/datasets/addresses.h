#pragma once

#include <string>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

/// The URLs that a file of a set may come from, in the order to try: <mirror>/<set>/<file> for each
/// mirror, or the published ones where there is no mirror. A mirror that is no URL is a folder.
/// Errors: UsageError for a mirror of another scheme than http, https and file.
[[nodiscard]] std::vector<std::string> urls_of(const Row& set,
                                               const PublishedFile& file,
                                               const std::vector<std::string>& mirrors);

/// Does it name a file of this machine (or of a mounted disk)? Waiting makes that no better.
[[nodiscard]] bool is_local(const std::string& url);

/// `mirrors`, or where it is empty those that ARGOSY_DATA_MIRROR names.
[[nodiscard]] std::vector<std::string> mirrors_or_default(const std::vector<std::string>& mirrors);

}  // namespace argosy::datasets
