#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace argosy::env {

/// Returns the value of an environment variable. nullopt: it is unset or empty.
/// Thread-safe as long as nobody calls setenv after threads were started.
[[nodiscard]] std::optional<std::string> get(const char* name);

/// Returns the value as a whole number. nullopt: it is unset or empty.
/// Errors: ConfigError naming the variable, its value and the range [low, high].
[[nodiscard]] std::optional<int64_t> get_int(const char* name,
                                             int64_t low = INT64_MIN,
                                             int64_t high = INT64_MAX);

/// Returns the value as a switch: 1, true, yes, on / 0, false, no, off in any case. nullopt: it is
/// unset or empty. Errors: ConfigError for any other value.
[[nodiscard]] std::optional<bool> get_bool(const char* name);

/// Returns the path of the program that runs, links resolved. Empty: /proc does not say.
[[nodiscard]] std::filesystem::path own_program();

}  // namespace argosy::env
