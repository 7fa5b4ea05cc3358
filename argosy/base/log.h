#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace argosy::log {

/// Severity. ARGOSY_LOG takes these words: trace, debug, info, warn, error, off.
enum class Level { kTrace, kDebug, kInfo, kWarn, kError, kOff };

/// Sets the name that stands in every line: "rank 3" in a job, "launch" in the launcher. It is
/// empty at first. Thread-safe.
void set_identity(std::string_view identity);

/// Sets the lowest level that is written. At first ARGOSY_LOG sets it. The default in a rank is
/// warn, because a user wants to see the bar and the tables.
void set_level(Level level);
[[nodiscard]] bool enabled(Level level);

/// Writes one whole line to standard error: time, level, identity, message. Thread-safe. `argosy
/// launch` puts the rank before each line (ARGOSY_LINE_PREFIX); an identity that says the same is
/// then left out.
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
