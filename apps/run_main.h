#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "argosy/base/catalogue.h"
#include "argosy/base/error.h"

namespace argosy::apps {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

/// What is wrong, and where it is explained.
inline void say(const std::exception& error) {
  const std::string entry = catalogue_entry(error.what());
  std::string text = error.what();
  if (text.ends_with('.')) {
    text.pop_back();
  }
  const char* end = text.ends_with('?') ? "" : ".";
  fmt::print(stderr, "{}{}\n", text, entry.empty() ? "" : fmt::format("{} See {}", end, entry));
}

/// What a main() returns whose work is `run`: its exit code, or after a message kUsage for what was
/// asked wrongly and kFailed for the rest. Output that cannot be written is a failure.
template <typename Run>
int run_main(Run run) {
  try {
    const int code = run();
    if (std::fflush(stdout) != 0) {
      std::perror("argosy: cannot write to standard output");
      return code == 0 ? kFailed : code;
    }
    return code;
  } catch (const UsageError& error) {
    say(error);
    return kUsage;
  } catch (const ConfigError& error) {
    say(error);
    return kUsage;
  } catch (const std::exception& error) {
    say(error);
    return kFailed;
  }
}

}  // namespace argosy::apps
