#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/result.h"
#include "argosy/os/subprocess.h"

namespace argosy::doctor {

/// A program that was run.
struct Ran {
  std::string output{};           ///< what it wrote, errors too; the first MB
  std::optional<os::Exit> end{};  ///< nullopt: it did not end in time, and was killed

  [[nodiscard]] bool ok() const { return end && end->ok(); }
};

struct RunOptions {
  std::chrono::milliseconds patience = std::chrono::seconds(20);
  std::vector<std::string> variables{};  ///< "NAME=value", beside the environment of this process
  std::function<void()> meanwhile{};     ///< called each second while the program runs
};

/// Runs a program until it ends, or at most for options.patience. Comes back even from a program
/// that a driver holds so that SIGKILL does not end it.
/// Errors: as for os::Subprocess::spawn.
[[nodiscard]] Result<Ran> run_program(const std::vector<std::string>& args,
                                      const RunOptions& options = {});

}  // namespace argosy::doctor
