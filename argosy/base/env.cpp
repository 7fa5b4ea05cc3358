#include "argosy/base/env.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::env {

std::optional<std::string> get(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read-only, see header
  if (value == nullptr || *value == '\0') {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> get_int(const char* name, int64_t low, int64_t high) {
  const std::optional<std::string> text = get(name);
  if (!text) {
    return std::nullopt;
  }
  const std::optional<int64_t> value = strings::parse_int(*text);
  if (!value || *value < low || *value > high) {
    throw ConfigError("base.env",
                      fmt::format("{}: expected a whole number{}, got \"{}\". Correct or unset it.",
                                  name,
                                  low == INT64_MIN ? "" : fmt::format(" from {} to {}", low, high),
                                  *text));
  }
  return value;
}

std::optional<bool> get_bool(const char* name) {
  const std::optional<std::string> text = get(name);
  if (!text) {
    return std::nullopt;
  }
  const std::string lower = strings::to_lower(*text);
  if (lower == "1" || lower == "true" || lower == "yes" || lower == "on") {
    return true;
  }
  if (lower == "0" || lower == "false" || lower == "no" || lower == "off") {
    return false;
  }
  throw ConfigError("base.env", fmt::format("{}: expected 1 or 0, got \"{}\"", name, *text));
}

std::filesystem::path own_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

}  // namespace argosy::env
