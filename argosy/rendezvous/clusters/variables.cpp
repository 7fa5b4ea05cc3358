#include "argosy/rendezvous/clusters/variables.h"

#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::rendezvous::clusters {

std::optional<int> number(const Lookup& lookup, const char* name, int low) {
  constexpr int64_t kMost = 1 << 20;
  const std::optional<std::string> given = lookup(name);
  if (!given) {
    return std::nullopt;
  }
  const std::optional<int64_t> value = strings::parse_int(*given);
  if (!value || *value < low || *value > kMost) {
    throw ConfigError(
        "rendezvous.clusters",
        fmt::format("{}={}: expected a whole number from {} to {}", name, *given, low, kMost));
  }
  return static_cast<int>(*value);
}

int required(const Lookup& lookup, const char* name, int low) {
  const std::optional<int> value = number(lookup, name, low);
  if (!value) {
    throw ConfigError("rendezvous.clusters",
                      fmt::format("{} is not set, though variables beside it are: unset them, or "
                                  "start this process as they say",
                                  name));
  }
  return *value;
}

std::string text(const Lookup& lookup, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const std::optional<std::string> value = lookup(name)) {
      return *value;
    }
  }
  return "";
}

}  // namespace argosy::rendezvous::clusters
