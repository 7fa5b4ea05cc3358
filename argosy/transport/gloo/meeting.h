#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"
#include "argosy/os/socket.h"
#include "argosy/transport/gloo/greeting.h"

// Internal to the room: how the ranks of a group connect.
namespace argosy::transport {

/// Gives a rank one connection to each other rank of its group. Each rank listens at one port,
/// calls all ranks below it and is called by all above it. A connection counts when both ends have
/// proven by a Greeting that they know the group's keys; any other caller is turned away and
/// logged. One loop serves all connections at once, so that nobody waits for somebody in
/// particular: strangers and slow ranks keep no others from meeting.
///
/// Thread-safety: one thread, but interrupt() from any.
class Meeting final {
 public:
  /// Errors: Error where the system has no random numbers or no pipes.
  Meeting(int rank, int size, os::Listener listener);

  /// Returns where and with which key the others reach this rank. It is a secret of the group, and
  /// goes into the store.
  [[nodiscard]] std::string card() const;

  /// Returns the socket of each rank, when all are connected. The port is closed then. `cards` hold
  /// the card() of each rank. Calls `look_around` five times a second; it may throw. Errors:
  /// LinkTimeout naming those that are missing; LinkBroken.
  [[nodiscard]] std::vector<os::UniqueFd> meet(const std::vector<std::string>& cards,
                                               const Deadline& deadline,
                                               const std::function<void()>& look_around);

  /// Makes meet() throw LinkBroken, now or later.
  void interrupt();

 private:
  /// A connection that is not proven yet.
  struct Talk {
    enum class Outcome { kUnderWay, kProven, kOver };

    os::UniqueFd fd{};
    Greeting greeting;
    Deadline until;
    bool connecting = false;

    [[nodiscard]] bool say();
    [[nodiscard]] Outcome listen();
  };
  /// A rank that this one calls, until it is connected.
  struct Call {
    std::string address{};
    uint16_t port = 0;
    std::string key{};
    std::optional<Talk> talk{};
    Deadline::Clock::time_point next{};                          ///< when to call again
    std::optional<Deadline::Clock::time_point> failing_since{};  ///< nothing listens there
    bool suspected = false;  ///< that a stranger answers there was logged
  };

  void read_cards(const std::vector<std::string>& cards);
  void place_calls();
  void take_callers();
  void talk_to_all(const Deadline& deadline);
  [[nodiscard]] bool serve_caller(Talk& talk);
  [[nodiscard]] bool serve_call(int peer, Call& call);
  void call_failed(int peer, Call& call, int error);
  void turn_away(const Talk& talk);
  [[nodiscard]] std::vector<int> missing() const;

  const int rank_;
  const int size_;
  const std::string key_;
  const std::string address_;
  const uint16_t port_;
  const os::Pipe interruption_;
  std::optional<os::Listener> listener_;  ///< until all are connected
  std::map<int, Call> calls_{};           ///< by the rank that is called
  std::vector<Talk> callers_{};           ///< in the order in which they came
  std::vector<os::UniqueFd> connected_;   ///< by rank
  std::set<std::string> told_{};          ///< addresses of strangers that were logged
};

}  // namespace argosy::transport
