#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace argosy::log {

/// Severity, in the words that ARGOSY_LOG takes: trace, debug, info, warn, error, off.
enum class Level { kTrace, kDebug, kInfo, kWarn, kError, kOff };

/// Name that stands in every line: "rank 3" in a job, "launch" in the launcher, empty at first.
/// Thread-safe.
void set_identity(std::string_view identity);

/// Lowest level that is written; starts as ARGOSY_LOG says (default: warn in a rank, for the bar
/// and the tables are what a user wants to see).
void set_level(Level level);
[[nodiscard]] bool enabled(Level level);

/// Writes one whole line to standard error: time, level, identity, message. Thread-safe. Under
/// `argosy launch`, which puts the rank before each line (ARGOSY_LINE_PREFIX), the identity is left
/// out where it says the same.
void write(Level level, std::string_view message);

/// log::info("joined group {} of {} ranks", name, size);
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) {
    write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) {
    write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarn)) {
    write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kError)) {
    write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
  }
}

}  // namespace argosy::log
