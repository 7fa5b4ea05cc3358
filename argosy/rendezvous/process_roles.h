#pragma once

#include <string>
#include <vector>

#include "argosy/os/fd.h"
#include "argosy/os/subprocess.h"

/// For tests: starts this program again in another role, as a process that can be killed.
namespace argosy::rendezvous {

/// Plays the role that the arguments name and returns its exit code, which the program returns too.
/// -1: they name none.
int play_role(int argc, char** argv);

class Role final {
 public:
  /// Starts the role of `args`, such as {"--serve", token}; process_roles.cpp lists them. `env` is
  /// added to ours.
  explicit Role(std::vector<std::string> args, const std::vector<std::string>& env = {});

  /// Waits for the next line that it prints. "": it ended.
  [[nodiscard]] std::string line();
  void signal(int number);
  /// Waits until it has ended. Fails the test when it does not end.
  [[nodiscard]] os::Exit wait();

 private:
  os::Pipe output_;
  os::Subprocess process_;
};

}  // namespace argosy::rendezvous
