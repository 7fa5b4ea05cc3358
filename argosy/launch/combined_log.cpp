#include "argosy/launch/combined_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace argosy::launch {

std::string CombinedLog::stamp(std::chrono::system_clock::time_point now) {
  const int64_t micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  const int64_t second = micros / 1'000'000;
  if (second != second_) {
    second_ = second;
    const auto time = static_cast<std::time_t>(second);
    std::tm local{};
    ::localtime_r(&time, &local);
    day_time_ = fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
  }
  return fmt::format("{}.{:06} ", day_time_, micros % 1'000'000);
}

}  // namespace argosy::launch
