#pragma once

#include <span>

#include "argosy/program/option.h"

namespace argosy::launch {

/// Returns all options of argosy launch, in the order of help and documentation: those of torchrun
/// and of Paddle's launcher, each with its treatment here, and its own. This table is the one place
/// that knows their names. The parser, --help and docs/reference/launch_options.md are made from
/// it.
[[nodiscard]] std::span<const program::Option> option_rows();

}  // namespace argosy::launch
