// Breaks the rule of reads on purpose.
#include "argosy/os/reads.h"
std::string content(const std::string& path) {
  std::ifstream file(path);
  return {};
}
