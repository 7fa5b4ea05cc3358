#include "argosy/transport/farewell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "argosy/base/strings.h"

namespace argosy::transport {
namespace {

std::string key_of(int rank) {
  return fmt::format("farewell/{}", rank);
}

}  // namespace

void tell_farewell(rendezvous::Store& store,
                   int rank,
                   const Farewell& farewell,
                   const Deadline& deadline) {
  store.set(key_of(rank),
            fmt::format("{}\n{}", fmt::join(farewell.culprits, ","), farewell.story),
            deadline);
}

std::optional<Farewell> farewell_of(rendezvous::Store& store, int rank, const Deadline& deadline) {
  if (!store.check({key_of(rank)}, deadline)) {
    return std::nullopt;
  }
  const std::string text = store.get(key_of(rank), deadline);
  const size_t line = std::min(text.find('\n'), text.size());
  Farewell farewell{.story = text.substr(std::min(line + 1, text.size()))};
  for (const auto& piece : strings::split(text.substr(0, line), ',')) {
    if (const auto culprit = strings::parse_int(piece)) {
      farewell.culprits.push_back(static_cast<int>(*culprit));
    }
  }
  return farewell;
}

}  // namespace argosy::transport
