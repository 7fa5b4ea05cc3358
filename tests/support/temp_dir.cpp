#include "tests/support/temp_dir.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace argosy::test {

TempDir::TempDir() : owner_pid_(::getpid()) {
  std::string pattern = (std::filesystem::temp_directory_path() / "argosy-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
  }
  path_ = pattern;
}

TempDir::~TempDir() {
  if (::getpid() == owner_pid_) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace argosy::test
