#pragma once

#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"
#include "argosy/transport/lobby.h"
#include "argosy/transport/shm/neighbours.h"

// Internal to the room: how the ranks of one host come together.
namespace argosy::transport {

/// Gives all ranks of a group the files that they share. Rank 0 makes the files. The other ranks
/// call it at a socket whose name holds a secret and stands in the group's store; the kernel says
/// which user calls. Rank 0 answers when all have called.
class ShmMeeting final {
 public:
  ShmMeeting(const Lobby& lobby, int rank, int size) : lobby_(lobby), rank_(rank), size_(size) {}

  /// Collective. Blocks: until all ranks have called.
  /// Errors: ConfigError, on all ranks, when one of them cannot share memory with rank 0;
  /// LinkTimeout naming the ranks that did not come; LinkBroken when a rank died.
  [[nodiscard]] SharedFiles meet(const Deadline& deadline);

 private:
  /// A rank that has called rank 0.
  struct Caller {
    os::UniqueFd socket{};
    os::UniqueFd process{};
  };

  [[nodiscard]] SharedFiles host(const Deadline& deadline);
  [[nodiscard]] bool admit(os::UniqueFd socket,
                           const std::string& secret,
                           const Deadline& deadline);
  [[noreturn]] void turn_away(const std::string& why) const;
  [[nodiscard]] std::vector<int> missing() const;

  [[nodiscard]] SharedFiles call(const Deadline& deadline);
  [[nodiscard]] os::UniqueFd greet_host(const std::string& place) const;

  const Lobby lobby_;
  const int rank_;
  const int size_;
  std::vector<Caller> callers_{};  ///< on rank 0: by rank; without a socket until it has called
};

}  // namespace argosy::transport
