#pragma once

#include <string>

#include "argosy/base/result.h"

namespace argosy::launch {

/// Why a program could not be started, and the exit code that a shell gives for it.
struct SpawnError {
  std::string text{};  ///< one line, with the hint that fits
  int exit_code = 1;   ///< 127: not found; 126: found but not executable; 1: anything else
};

/// Explains what os::Subprocess::spawn reported about `program`.
[[nodiscard]] SpawnError explain_spawn(const std::string& program, const Failure& failure);

}  // namespace argosy::launch
