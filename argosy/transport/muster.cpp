#include "argosy/transport/muster.h"

#include "argosy/base/error.h"
#include "argosy/transport/peer_notes.h"

namespace argosy::transport {

std::optional<Muster> Muster::take(rendezvous::Store& group,
                                   rendezvous::Store* job,
                                   std::chrono::milliseconds patience) {
  try {
    // In the opposite order to that in which a rank leaves the group and then the job: whoever left
    // in between is then in a later list, and not taken for one that never came.
    Muster muster;
    const std::string ranks(kMember);
    const Deadline deadline = Deadline::after(patience);
    if (job != nullptr) {
      muster.left_job = job->departures(ranks, deadline);
    }
    muster.present = group.members(ranks, deadline);
    muster.left = group.departures(ranks, deadline);
    // Whoever left in between is in both lists. It counts as present, so no rank is ever in
    // neither.
    for (const rendezvous::Member& member : muster.present) {
      std::erase_if(muster.left, [&](const auto& one) { return one.member == member.name; });
    }
    return muster;
  } catch (const TimeoutError&) {
    return std::nullopt;
  }
}

std::map<int, std::string> Muster::notes() const {
  std::map<int, std::string> notes;
  for (const rendezvous::Departure& departure : left) {
    notes[rank_of(departure.member)] = departure.note;
  }
  for (const rendezvous::Member& member : present) {
    notes[rank_of(member.name)] = member.note;
  }
  return notes;
}

std::set<int> Muster::leavers() const {
  std::set<int> ranks;
  for (const rendezvous::Departure& departure : left) {
    ranks.insert(rank_of(departure.member));
  }
  return ranks;
}

}  // namespace argosy::transport
