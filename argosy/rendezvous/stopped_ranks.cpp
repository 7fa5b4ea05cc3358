#include "argosy/rendezvous/stopped_ranks.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::rendezvous {
namespace {

constexpr std::string_view kStopped = "stopped/";

/// What a rank's own store puts before its keys; "" when the rank has not joined.
std::string prefix_of_rank(Store& store,
                           const std::string& run_id,
                           int rank,
                           const Deadline& deadline) {
  // A process may join several times: each time has its number between the run and the member.
  const std::string run = fmt::format("run/{}/", run_id);
  const std::string member = fmt::format("/rank/{}", rank);
  for (const Member& present : store.members(run, deadline)) {
    const std::string_view name(present.name);
    const size_t end = name.find('/', run.size());
    if (end != std::string_view::npos && name.substr(end) == member) {
      return std::string(name.substr(0, end + 1));
    }
  }
  return "";
}

}  // namespace

std::string tell_stopped(Store& store,
                         const std::string& run_id,
                         int rank,
                         const std::string& how,
                         const Deadline& deadline) {
  const std::string prefix = prefix_of_rank(store, run_id, rank, deadline);
  if (prefix.empty()) {
    return "";
  }
  std::string key = fmt::format("{}{}{}", prefix, kStopped, rank);
  store.set(key, how, deadline);
  return key;
}

std::optional<int64_t> process_of_rank(Store& store,
                                       const std::string& run_id,
                                       int rank,
                                       const Deadline& deadline) {
  const std::string prefix = prefix_of_rank(store, run_id, rank, deadline);
  const std::string card = fmt::format("{}join/{}", prefix, rank);
  if (prefix.empty() || !store.check({card}, deadline)) {
    return std::nullopt;
  }
  const std::vector<std::string> lines = strings::split(store.get(card, deadline), '\n');
  return lines.size() > 1 ? strings::parse_int(lines[1]) : std::nullopt;
}

std::map<int, std::string> stopped_ranks(Store& job, const Deadline& deadline) {
  std::map<int, std::string> found;
  for (const std::string& key : job.keys(std::string(kStopped), deadline)) {
    const auto rank = strings::parse_int(std::string_view(key).substr(kStopped.size()));
    if (!rank) {
      continue;
    }
    try {
      const Deadline moment = Deadline::after(std::chrono::milliseconds(100));
      found[static_cast<int>(*rank)] = job.get(key, deadline.sooner(moment));
    } catch (const TimeoutError&) {  // it goes on since the look
    }
  }
  return found;
}

}  // namespace argosy::rendezvous
