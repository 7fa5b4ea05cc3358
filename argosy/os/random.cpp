#include "argosy/os/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <vector>

#include "argosy/base/error.h"

namespace argosy::os {

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  size_t filled = 0;
  while (filled < raw.size()) {
    const ssize_t got = ::getrandom(raw.data() + filled, raw.size() - filled, 0);
    if (got < 0 && errno != EINTR) {
      throw Error("os.random", "no random numbers: " + errno_message(errno));
    }
    filled += got > 0 ? static_cast<size_t>(got) : 0;
  }
  std::string text;
  for (const unsigned char byte : raw) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

}  // namespace argosy::os
