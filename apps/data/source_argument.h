#pragma once

#include <memory>
#include <string>

#include "argosy/datasets/source.h"

namespace argosy::datatool {

/// Opens the set that `NAME PATH`, `NAME` (at the place of fetch) or `PATH` (recognised by its
/// files) names.
///
/// Errors: UsageError naming the set that was probably meant; DataError of the readers, and when a
/// named set is not there, with the command that fetches it.
[[nodiscard]] std::shared_ptr<const datasets::Source> open_argument(const std::string& what,
                                                                    const std::string& path);

}  // namespace argosy::datatool
