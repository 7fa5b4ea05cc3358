#pragma once

#include <memory>
#include <string>

#include "argosy/datasets/source.h"

namespace argosy::datatool {

/// What `NAME PATH`, `NAME` (where fetch brings it) or `PATH` (recognised by its files) stands for.
///
/// Errors: UsageError naming the set that was probably meant; DataError of the readers, and where a
/// named set is not there, with the command that brings it.
[[nodiscard]] std::shared_ptr<const datasets::Source> open_argument(const std::string& what,
                                                                    const std::string& path);

}  // namespace argosy::datatool
