#include "argosy/rendezvous/job_token.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::rendezvous {

std::string job_token(const std::function<std::optional<std::string>(const char*)>& lookup) {
  if (const std::optional<std::string> token = lookup("ARGOSY_TOKEN")) {
    return *token;
  }
  const std::optional<std::string> path = lookup("ARGOSY_TOKEN_FILE");
  if (!path) {
    return "";
  }
  std::ifstream file(*path);
  std::string line;
  std::getline(file, line);
  const std::string token(strings::trim(line));
  if (token.empty()) {
    throw ConfigError(
        "rendezvous.token",
        fmt::format("ARGOSY_TOKEN_FILE={}: {}. Expected the job's secret in its first line.",
                    *path,
                    file.is_open() ? "its first line is empty" : errno_message(errno)));
  }
  return token;
}

}  // namespace argosy::rendezvous
