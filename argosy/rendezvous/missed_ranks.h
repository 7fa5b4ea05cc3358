#pragma once

#include <cstdint>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// What becomes of a job in which a rank is killed.
enum class MissedRank : uint8_t {
  kEndsTheJob,
  kStartsAgain,  ///< the others go on if it is started again
  kIsMissed,     ///< the others go on, with it or without
};

/// A rank says of itself what its death means. Without that it ends the job.
/// `job`: the store that join() returns.
void say_if_missed(Store& job, int rank, MissedRank what, const Deadline& deadline);

/// Returns what a rank has said. `store`: the whole one; `run_id` names the start of the ranks, as
/// their launcher does.
[[nodiscard]] MissedRank if_missed(Store& store,
                                   const std::string& run_id,
                                   int rank,
                                   const Deadline& deadline);

/// The launcher tells the other ranks that this one is gone and will not be started again.
void tell_missed(Store& store, const std::string& run_id, int rank, const Deadline& deadline);
/// True when its launcher has told it. `job`: as for say_if_missed().
[[nodiscard]] bool is_missed(Store& job, int rank, const Deadline& deadline);

}  // namespace argosy::rendezvous
