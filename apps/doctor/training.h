#pragma once

#include <string>

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// Lets two processes train for a moment through the real launcher. `argosy` is its path; it starts
/// `argosy-torch` beside it. Takes some seconds, a minute at most.
[[nodiscard]] Finding training_finding(const std::string& argosy);

/// Returns what rank 0 of that training says ("doctor {json}" somewhere in `output`) as a finding.
[[nodiscard]] Finding read_training(const std::string& output, int exit_code);

}  // namespace argosy::doctor
