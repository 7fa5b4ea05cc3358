#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"

/// Limits and messages that all stores share, so that a program meets the same ones on each.
namespace argosy::rendezvous {

inline constexpr size_t kLargestKeyBytes = 4096;
inline constexpr size_t kLargestValueBytes = size_t{16} << 20;
inline constexpr size_t kLargestNoteBytes = size_t{16} << 10;
inline constexpr std::chrono::milliseconds kLongestWaitForRanks{2000};

/// Returns how long a rank that meets `world_size` others waits before it looks a second time which
/// ranks are missing or dead. Each wait after that is twice as long, up to kLongestWaitForRanks.
/// One look is four calls of the store. When all of 256 ranks looked after 100 ms, that made a
/// third of the cost of their meeting.
[[nodiscard]] constexpr std::chrono::milliseconds first_wait_for_ranks(int world_size) {
  const auto wait = world_size * std::chrono::milliseconds(4);
  return std::clamp(wait, std::chrono::milliseconds(100), kLongestWaitForRanks);
}

/// Throws UsageError("rendezvous.<op>") unless `key` is non-empty, short enough and free of NUL and
/// newline. Member names and prefixes obey the same rule.
void check_key(std::string_view op, std::string_view key);
void check_keys(std::string_view op, const std::vector<std::string>& keys);
/// Throws UsageError when the value is larger than a store takes.
void check_value(std::string_view op, std::string_view key, std::string_view value);
/// Returns a note that is not too long. Notes are for people, so a long one is cut and not refused.
[[nodiscard]] std::string cut_note(std::string_view note);

/// "a", "b" and 3 more; at most eight are spelled out.
[[nodiscard]] std::string quote_keys(const std::vector<std::string>& keys);

/// "0.2 s", "30 s": for messages.
[[nodiscard]] std::string seconds_since(Deadline::Clock::time_point start);

/// Returns what a wait throws at its deadline. `missing` is empty when the store could not be
/// asked.
[[nodiscard]] TimeoutError wait_timed_out(std::string_view op,
                                          Deadline::Clock::time_point start,
                                          const std::vector<std::string>& missing,
                                          std::string_view store);

/// Returns the sum of the decimal `value` ("" counts as 0) and `amount`.
/// Errors: UsageError when `value` is no number or the sum does not fit.
[[nodiscard]] int64_t add_decimal(std::string_view key, std::string_view value, int64_t amount);

}  // namespace argosy::rendezvous
