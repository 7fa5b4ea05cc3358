#include "argosy/os/oom.h"

#include <fstream>

namespace argosy::os {

std::optional<int64_t> oom_kills(const std::string& vmstat) {
  std::ifstream file(vmstat);
  std::string name;
  int64_t value = 0;
  while (file >> name >> value) {
    if (name == "oom_kill") {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace argosy::os
