#pragma once

#include <string>
#include <vector>

#include "argosy/os/fd.h"
#include "argosy/os/subprocess.h"

/// For tests: this program started again in another role, as a process that can be killed.
namespace argosy::rendezvous {

/// If the arguments name a role, plays it; its exit code is the program's. -1: they name none.
int play_role(int argc, char** argv);

class Role final {
 public:
  /// `args`: {"--serve", token} and so on, see process_roles.cpp. `env` is added to ours.
  explicit Role(std::vector<std::string> args, const std::vector<std::string>& env = {});

  /// The next line it prints, waited for; "" when it ended.
  [[nodiscard]] std::string line();
  void signal(int number);
  /// Waits for its end. Fails the test when it does not come.
  [[nodiscard]] os::Exit wait();

 private:
  os::Pipe output_;
  os::Subprocess process_;
};

}  // namespace argosy::rendezvous
