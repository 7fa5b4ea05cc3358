#include "argosy/rendezvous/limits.h"

#include <algorithm>
#include <optional>

#include "argosy/base/check.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"

namespace argosy::rendezvous {

void check_key(std::string_view op, std::string_view key) {
  const std::string where = fmt::format("rendezvous.{}", op);
  ARGOSY_CHECK(!key.empty(), where, "empty key: expected at least one byte. Give the key a name.");
  ARGOSY_CHECK(key.size() <= kLargestKeyBytes,
               where,
               "key too long: expected at most {} bytes, got {} (it starts \"{}\"). Shorten it.",
               kLargestKeyBytes,
               key.size(),
               key.substr(0, 40));
  const size_t bad = key.find_first_of(std::string_view("\0\n", 2));
  ARGOSY_CHECK(bad == std::string_view::npos,
               where,
               "malformed key: expected no NUL and no newline, got 0x{:02x} at byte {} (after "
               "\"{}\"). Encode the key.",
               static_cast<unsigned char>(key[bad]),
               bad,
               key.substr(0, std::min<size_t>(bad, 40)));
}

void check_keys(std::string_view op, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    check_key(op, key);
  }
}

void check_value(std::string_view op, std::string_view key, std::string_view value) {
  ARGOSY_CHECK(value.size() <= kLargestValueBytes,
               fmt::format("rendezvous.{}", op),
               "value of key \"{}\" too large: expected at most {} bytes (16 MiB), got {}. Stores "
               "carry addresses and small messages; send data through a collective.",
               key,
               kLargestValueBytes,
               value.size());
}

std::string cut_note(std::string_view note) {
  if (note.size() <= kLargestNoteBytes) {
    return std::string(note);
  }
  return std::string(note.substr(0, kLargestNoteBytes - 4)) + " ...";
}

std::string quote_keys(const std::vector<std::string>& keys) {
  constexpr size_t kSpelledOut = 8;
  std::string text;
  for (size_t i = 0; i < std::min(keys.size(), kSpelledOut); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", keys[i]);
  }
  if (keys.size() > kSpelledOut) {
    text += fmt::format(" and {} more", keys.size() - kSpelledOut);
  }
  return text;
}

std::string seconds_since(Deadline::Clock::time_point start) {
  return text::duration(Deadline::Clock::now() - start);
}

TimeoutError wait_timed_out(std::string_view op,
                            Deadline::Clock::time_point start,
                            const std::vector<std::string>& missing,
                            std::string_view store) {
  const std::string what = missing.empty()
                               ? fmt::format(
                                     "the store {} did not answer within {}. See whether its "
                                     "process is stopped or its machine overloaded.",
                                     store,
                                     seconds_since(start))
                               : fmt::format(
                                     "timed out after {} waiting for {} {} (store {}). See whether "
                                     "the rank that sets it has died or is late.",
                                     seconds_since(start),
                                     missing.size() == 1 ? "key" : "keys",
                                     quote_keys(missing),
                                     store);
  return TimeoutError(fmt::format("rendezvous.{}", op), what, {.op = fmt::format("store.{}", op)});
}

int64_t add_decimal(std::string_view key, std::string_view value, int64_t amount) {
  const std::optional<int64_t> number = value.empty() ? 0 : strings::parse_int(value);
  ARGOSY_CHECK(number.has_value(),
               "rendezvous.add",
               "key \"{}\" is no counter: expected a decimal number, got \"{}\". Use another key.",
               key,
               value.substr(0, 40));
  int64_t sum = 0;
  ARGOSY_CHECK(!__builtin_add_overflow(*number, amount, &sum),
               "rendezvous.add",
               "counter \"{}\" overflows: {} + {} does not fit 64 bits.",
               key,
               *number,
               amount);
  return sum;
}

}  // namespace argosy::rendezvous
