#pragma once

#include <string>

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// Two processes that train for a moment, through the real launcher: `argosy` (a path) starts
/// `argosy-torch` beside it. Takes some seconds, a minute at most.
[[nodiscard]] Finding training_finding(const std::string& argosy);

/// What rank 0 of that says ("doctor {json}" somewhere in `output`), as a finding.
[[nodiscard]] Finding read_training(const std::string& output, int exit_code);

}  // namespace argosy::doctor
