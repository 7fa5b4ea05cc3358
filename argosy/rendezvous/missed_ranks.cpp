#include "argosy/rendezvous/missed_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "argosy/base/strings.h"

namespace argosy::rendezvous {
namespace {

constexpr const char* kStartsAgainText = "starts again";
constexpr const char* kIsMissedText = "is missed";

std::string saying_of(int rank) {
  return fmt::format("missed/if/{}", rank);
}
std::string word_of(int rank) {
  return fmt::format("missed/rank/{}", rank);
}

/// What the rank's own store put before its keys when it joined last; "" when it has not.
std::string prefix_of_last_join(Store& store,
                                const std::string& run_id,
                                int rank,
                                const Deadline& deadline) {
  const std::string run = fmt::format("run/{}/", run_id);
  const std::string card = fmt::format("/join/{}", rank);
  int64_t last = -1;
  for (const std::string& key : store.keys(run, deadline)) {
    const std::string_view rest = std::string_view(key).substr(run.size());
    if (rest.ends_with(card)) {
      last = std::max(last,
                      strings::parse_int(rest.substr(0, rest.size() - card.size())).value_or(-1));
    }
  }
  return last < 0 ? "" : fmt::format("{}{}/", run, last);
}

}  // namespace

void say_if_missed(Store& job, int rank, MissedRank what, const Deadline& deadline) {
  if (what == MissedRank::kEndsTheJob) {
    return;
  }
  job.set(
      saying_of(rank), what == MissedRank::kIsMissed ? kIsMissedText : kStartsAgainText, deadline);
}

MissedRank if_missed(Store& store, const std::string& run_id, int rank, const Deadline& deadline) {
  const std::string prefix = prefix_of_last_join(store, run_id, rank, deadline);
  const std::string key = prefix + saying_of(rank);
  if (prefix.empty() || !store.check({key}, deadline)) {
    return MissedRank::kEndsTheJob;
  }
  return store.get(key, deadline) == kIsMissedText ? MissedRank::kIsMissed
                                                   : MissedRank::kStartsAgain;
}

void tell_missed(Store& store, const std::string& run_id, int rank, const Deadline& deadline) {
  const std::string prefix = prefix_of_last_join(store, run_id, rank, deadline);
  if (!prefix.empty()) {
    store.set(prefix + word_of(rank), "", deadline);
  }
}

bool is_missed(Store& job, int rank, const Deadline& deadline) {
  return job.check({word_of(rank)}, deadline);
}

}  // namespace argosy::rendezvous
