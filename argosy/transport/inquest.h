#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/rendezvous/store.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/muster.h"
#include "argosy/transport/peer_notes.h"
#include "argosy/transport/peer_watch.h"
#include "argosy/transport/progress.h"
#include "argosy/transport/rank_names.h"
#include "argosy/transport/verdict.h"

// Internal to the room.
namespace argosy::transport {

/// Finds out who is to blame for a failed operation. It asks the group's store who is present, who
/// is gone and what each rank did last, and the job's store who died before it came to the group.
/// It changes nothing there. See VerdictWriter for the errors.
///
/// Thread-safe: it has no state of its own.
class Inquest final {
 public:
  /// `options`: of the PeerWatch that asks; patience, has_ended and the names are used here.
  Inquest(std::shared_ptr<rendezvous::Store> store,
          int rank,
          int size,
          const PeerWatchOptions& options)
      : store_(std::move(store)),
        rank_(rank),
        size_(size),
        options_(options),
        names_(options.world_ranks),
        verdict_(rank, size, options) {}

  /// True if a rank is gone for a reason that breaks the group. False when the store does not say.
  [[nodiscard]] bool someone_is_gone() const;

  // See the functions of these names in PeerWatch. `mine`: what this rank does.
  [[nodiscard]] std::optional<int> who_left(int64_t seq, int peer) const;
  [[nodiscard]] Verdict link_broken(const Attempt& what, const LinkBroken& broken) const;
  [[nodiscard]] Verdict failed_here(const Attempt& what, const OwnFault& fault) const {
    return verdict_.by_own_fault(what, fault.reason);
  }
  [[nodiscard]] Verdict timed_out(const Attempt& what,
                                  const LinkTimeout& late,
                                  const Progress& mine) const;
  [[nodiscard]] Verdict mismatched(const Attempt& what,
                                   const Mismatch& mismatch,
                                   const Progress& mine) const;
  /// See VerdictWriter.
  [[nodiscard]] CommError own_error(const Attempt& what, const std::string& story) const {
    return verdict_.own_error(what, story);
  }

 private:
  /// Whether a rank that left in peace is to blame.
  enum class Leavers { kExcused, kBlamed };
  /// What the notes of the ranks say about an operation that failed.
  struct Findings {
    std::optional<Blame> blame{};
    Absentees absent{};
    std::string disagreement{};
  };

  [[nodiscard]] std::optional<Muster> look() const {
    return Muster::take(*store_, options_.job.get(), options_.patience);
  }
  [[nodiscard]] std::optional<Blame> find_blame(const Muster& muster,
                                                int peer,
                                                Leavers leavers) const;
  [[nodiscard]] std::optional<Blame> find_blame_in_job(const Muster& muster) const;
  [[nodiscard]] std::string story_of_lost(int rank, const std::string& last_seen) const;
  [[nodiscard]] int world_rank_in_job(const std::string& member) const;
  [[nodiscard]] bool known_to_have_ended(int rank) const;
  [[nodiscard]] std::map<int, std::string> stopped_in_job() const;
  [[nodiscard]] std::map<int, std::string> stopped() const;
  [[nodiscard]] std::string trouble_elsewhere(const Muster& muster) const;
  [[nodiscard]] Absentees absentees(const Muster& muster, int64_t seq) const;
  [[nodiscard]] std::string disagreement_at(int64_t seq,
                                            const Muster& muster,
                                            const Progress& mine) const;
  [[nodiscard]] std::optional<Blame> who_broke_the_link(int peer) const;
  [[nodiscard]] std::optional<Blame> who_gave_up(const Muster& muster) const;
  [[nodiscard]] Findings inquire(const Attempt& what, Findings found, const Progress& mine) const;
  [[nodiscard]] Verdict store_is_gone(const Attempt& what, const Error& why) const;

  const std::shared_ptr<rendezvous::Store> store_;
  const int rank_;
  const int size_;
  const PeerWatchOptions options_;
  const RankNames names_;
  const VerdictWriter verdict_;
};

}  // namespace argosy::transport
