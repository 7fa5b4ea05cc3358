#include "argosy/base/terminal.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "argosy/base/env.h"
#include "argosy/base/strings.h"

namespace argosy::terminal {

bool type_redraws() {
  return env::get("TERM").value_or("dumb") != "dumb";
}

bool redraws(int fd) {
  return type_redraws() && ::isatty(fd) == 1;
}

bool shows_blocks(int fd) {
  const std::string language = strings::to_lower(
      env::get("LC_ALL").value_or(env::get("LC_CTYPE").value_or(env::get("LANG").value_or(""))));
  const bool utf8 =
      language.find("utf-8") != std::string::npos || language.find("utf8") != std::string::npos;
  return utf8 && redraws(fd);
}

bool is_file(int fd) {
  struct stat what {};
  return ::fstat(fd, &what) == 0 && S_ISREG(what.st_mode);
}

int columns(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  const std::string said = env::get("COLUMNS").value_or("80");
  return static_cast<int>(std::clamp<int64_t>(strings::parse_int(said).value_or(80), 10, 1000));
}

}  // namespace argosy::terminal
