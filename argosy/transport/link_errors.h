#pragma once

#include <string>
#include <vector>

namespace argosy::transport {

// What an implementation of a transport throws. WatchedTransport turns each of these into the
// exception that the caller sees, which names the rank to blame.

/// A connection to another rank broke.
struct LinkBroken {
  int peer = -1;         ///< the rank at the other end; -1: not known
  std::string reason{};  ///< "Connection reset by peer"
};

/// This rank itself cannot go on: its device, or a library of its own, failed.
struct OwnFault {
  std::string reason{};  ///< "ncclAllReduce: unhandled cuda error"
};

/// The data of other ranks did not arrive before the deadline.
struct LinkTimeout {
  std::vector<int> awaited{};  ///< the ranks whose data is missing
};

/// Ranks called the same operation differently.
struct Mismatch {
  /// Where the mismatch was found.
  enum class Scope {
    kGroup,  ///< between ranks of the group; `reason` names their calls
    kPart,   ///< inside a part of the group, in the part's own numbers; the ranks' notes say more
  };

  std::string reason{};  ///< "rank 0 called barrier where rank 1 called share of 4096 B"
  Scope scope = Scope::kGroup;
};

}  // namespace argosy::transport
