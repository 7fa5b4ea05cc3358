#include "argosy/base/log.h"

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "argosy/base/env.h"

namespace argosy::log {
namespace {

constexpr std::array<std::pair<std::string_view, Level>, 6> kNames{{{"trace", Level::kTrace},
                                                                    {"debug", Level::kDebug},
                                                                    {"info", Level::kInfo},
                                                                    {"warn", Level::kWarn},
                                                                    {"error", Level::kError},
                                                                    {"off", Level::kOff}}};

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kTrace:
      return spdlog::level::trace;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::warn;
}

/// One logger per process, never destroyed: a static's destructor may still log.
struct State {
  std::mutex mutex;
  std::string identity;
  /// What the launcher puts before each line that we write: not said twice.
  const std::string prefix = env::get("ARGOSY_LINE_PREFIX").value_or("");
  spdlog::logger logger{"argosy", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>()};

  State() {
    logger.set_pattern("%H:%M:%S.%e %^%l%$ %v");
    logger.set_level(spdlog::level::warn);
    const std::optional<std::string> wanted = env::get("ARGOSY_LOG");
    if (!wanted) {
      return;
    }
    for (const auto& [name, level] : kNames) {
      if (*wanted == name) {
        logger.set_level(to_spdlog(level));
        return;
      }
    }
    logger.warn("ARGOSY_LOG: expected trace, debug, info, warn, error or off, got \"{}\"", *wanted);
  }
};

State& state() {
  static auto* instance = new State;
  return *instance;
}

}  // namespace

void set_identity(std::string_view identity) {
  const std::lock_guard lock(state().mutex);
  state().identity = identity;
}

void set_level(Level level) {
  state().logger.set_level(to_spdlog(level));
}

bool enabled(Level level) {
  return state().logger.should_log(to_spdlog(level));
}

void write(Level level, std::string_view message) {
  State& s = state();
  std::string identity;
  {
    const std::lock_guard lock(s.mutex);
    identity = s.identity;
  }
  if (identity.empty() || identity == s.prefix) {
    s.logger.log(to_spdlog(level), "{}", message);
  } else {
    s.logger.log(to_spdlog(level), "[{}] {}", identity, message);
  }
}

}  // namespace argosy::log
