#include "argosy/launch/nodes/journal.h"

#include <fmt/format.h>

#include "argosy/base/error.h"

namespace argosy::launch {

std::string Journal::key(int64_t number) const {
  return fmt::format("{}/{}", name_, number);
}

void Journal::append(const std::string& text, const Deadline& deadline) {
  // Where another has written the very same text at a place, that says what this one has to say.
  while (store_->compare_set(key(free_), "", text, deadline) != text) {
    ++free_;
  }
  ++free_;
}

std::optional<std::string> Journal::next(const Deadline& deadline) {
  try {
    std::string text = store_->get(key(read_), deadline);
    ++read_;
    return text;
  } catch (const TimeoutError&) {
    return std::nullopt;
  }
}

}  // namespace argosy::launch
