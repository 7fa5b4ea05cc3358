#pragma once

#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// What one rank saw when it called all others.
struct Calls {
  std::string host{};                 ///< its name
  std::string address{};              ///< the address at which the others reach it
  std::vector<std::string> failed{};  ///< for each rank, why it was not reached; "": it was
  std::vector<double> took_ms{};      ///< for each rank, how long the connection took
};

/// Each rank listens, tells the others where, and connects to each of them. Collective; every rank
/// gets what all saw. Errors: those of the store; TimeoutError when a rank does not answer.
[[nodiscard]] std::vector<Calls> call_all(rendezvous::Store& store,
                                          int rank,
                                          int ranks,
                                          const std::string& address,
                                          const Deadline& deadline);

/// Names each pair that cannot talk, and the slowest of those that can.
[[nodiscard]] Finding judge_calls(const std::vector<Calls>& calls);

}  // namespace argosy::doctor
