#pragma once

#include <exception>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/transport/peer_notes.h"
#include "argosy/transport/peer_watch.h"
#include "argosy/transport/rank_names.h"

// Internal to the room.
namespace argosy::transport {

/// What is thrown on this rank when an operation failed, and what the others are told.
struct Verdict {
  std::exception_ptr error{};
  Blame blame{};
};

/// Ranks that did not come to an operation.
struct Absentees {
  std::vector<int> ranks{};
  std::vector<std::string> last_words{};  ///< of each of them
  /// Whom they may wait for in another group, in words. Then none of them is to blame.
  std::string cause{};
};

/// Words the verdicts of one rank of a group. It asks nobody.
///
/// Thread-safe: it does not change.
class VerdictWriter final {
 public:
  /// `options`: of the PeerWatch; the names are used here.
  VerdictWriter(int rank, int size, const PeerWatchOptions& options);

  /// A link broke for the reason that `blame` names. `how`: "Connection reset by peer".
  [[nodiscard]] Verdict by_broken_link(const Attempt& what,
                                       Blame blame,
                                       const std::string& how) const;
  /// This rank is to blame.
  [[nodiscard]] Verdict by_own_fault(const Attempt& what, const std::string& reason) const;
  /// Another rank failed first, and its blame tells why.
  [[nodiscard]] Verdict by_blame(const Attempt& what, Blame blame) const;
  [[nodiscard]] Verdict by_mismatch(const Attempt& what, const std::string& reason) const;
  /// `awaited`: the ranks whose data is missing. `absent`: those that did not come to the
  /// operation; without ranks when all came.
  [[nodiscard]] Verdict by_timeout(const Attempt& what,
                                   const std::vector<int>& awaited,
                                   Absentees absent) const;
  /// Nobody is to blame: "rank 0/4 (gloo): <story>".
  [[nodiscard]] CommError own_error(const Attempt& what, const std::string& story) const;

 private:
  [[nodiscard]] CommContext context_of(const Attempt& what, std::vector<int> peers = {}) const;
  [[nodiscard]] std::string cannot_complete(const Attempt& what,
                                            const Blame& blame,
                                            const std::string& how) const;

  const std::string group_;
  const int rank_;
  const RankNames names_;
  const std::string myself_;  ///< "rank 0/4 group \"pair\" (gloo)"
};

}  // namespace argosy::transport
