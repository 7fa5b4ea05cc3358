#pragma once

#include <span>
#include <string>

#include "argosy/program/option.h"

namespace argosy::launch {

/// All options of argosy launch, in the order in which help and documentation show them: what it
/// makes of those of torchrun and of Paddle's launcher, and its own. This table is the one place
/// that knows their names: the parser, --help and docs/reference/launch_options.md are made from
/// it.
[[nodiscard]] std::span<const program::Option> option_rows();

/// docs/reference/launch_options.md.
[[nodiscard]] std::string options_reference();

}  // namespace argosy::launch
