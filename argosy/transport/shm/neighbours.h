#pragma once

#include <cstdint>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"
#include "argosy/transport/rank_names.h"
#include "argosy/transport/shm/blocks.h"
#include "argosy/transport/shm/mailbox.h"
#include "argosy/transport/shm/rounds.h"
#include "argosy/transport/shm/segment.h"
#include "argosy/transport/shm/shm.h"
#include "argosy/transport/shm/waiter.h"

// Internal to the room.
namespace argosy::transport {

/// The files that all ranks of a group have in common. None of them has a name in a file system.
struct SharedFiles {
  os::UniqueFd memory{};                  ///< for a Segment
  os::UniqueFd mail{};                    ///< for a Mailbox
  os::UniqueFd blocks{};                  ///< for Blocks
  std::vector<os::UniqueFd> processes{};  ///< a pidfd of each rank
};

/// All that one rank shares with the others on its host. A message that is under way keeps it
/// alive after its transport.
struct Neighbours {
  Neighbours(
      int rank, int size, SharedFiles files, const ShmOptions& options, const RankNames& names);

  /// Moves messages on: those that this rank sends and those that it receives.
  void pump();
  void wait_for_message(Mailbox::Expected& expected, const Deadline& deadline);
  /// Waits until the message at `place` among those to `peer` lies in shared memory.
  void wait_until_sent(int peer, uint64_t place, const Deadline& deadline);

  Segment segment;
  Mailbox mailbox;
  Blocks blocks;
  Waiter waiter;
  Rounds rounds;
};

}  // namespace argosy::transport
