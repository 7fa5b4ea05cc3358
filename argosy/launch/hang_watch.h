#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/rank.h"
#include "argosy/launch/session.h"
#include "argosy/os/children.h"
#include "argosy/os/heartbeat.h"

namespace argosy::launch {

/// Finds ranks that stand still and ends them. A rank stands still if it is silent for too long or
/// if the kernel reports it as stopped. Passive: the attempt's loop calls it while the job runs.
///
/// Functions that return ends return those of stopped ranks, which nothing else reports. A rank
/// that hangs ends by SIGABRT and is reaped like any other.
class HangWatch final {
 public:
  /// `ranks`: by their places on this node.
  HangWatch(Session& session, std::vector<Rank>& ranks) : session_(session), ranks_(ranks) {}

  /// Adds the place of the heartbeat page to the environment of the next rank. Returns the
  /// descriptor that the rank must keep for it; -1: no heartbeat is watched.
  [[nodiscard]] int watch(std::vector<std::string>& env, size_t local);
  /// nullopt: the rank is alone, so nobody waits for it.
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_between_looks() const;
  /// If it is time, finds out which ranks are stopped and tells the other ranks.
  void look();
  /// Ends ranks that have stood still for --heartbeat_timeout while others wait for them.
  [[nodiscard]] std::vector<RankEnd> end_the_hung();
  /// Call it when a rank failed in the way of ranks that lose a peer. A rank of ours that is
  /// stopped is then the cause, and this ends it.
  [[nodiscard]] std::vector<RankEnd> end_the_stopped();
  /// Restarts all clocks. Ctrl-Z stopped the launcher and the ranks, which is no hang.
  void begin_anew();

 private:
  /// A rank that was stopped at the last look.
  struct StoppedRank {
    os::Stopped how{};
    std::chrono::steady_clock::time_point since{};  ///< when it was first seen stopped
    bool seen_twice = false;
    std::string word{};  ///< key of the message to the other ranks; "": not written yet
  };

  [[nodiscard]] std::optional<os::Pulse> pulse_of(size_t local) const;
  [[nodiscard]] std::optional<os::Stopped> look_at(size_t local) const;
  [[nodiscard]] std::optional<int64_t> process_that_joined(size_t local) const;
  void note(size_t local, const std::optional<os::Stopped>& now);
  void leave_word(size_t local);
  [[nodiscard]] RankEnd end_stopped(size_t local);
  void kill_who_hangs_on();

  Session& session_;
  std::vector<Rank>& ranks_;
  /// One per rank, in their order; empty: no heartbeat is watched.
  std::vector<os::HeartbeatMonitor> hearts_{};
  std::vector<std::optional<StoppedRank>> stopped_{};  ///< in the order of ranks_
  std::chrono::steady_clock::time_point next_look_{};
  /// Silence before this time does not count.
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point>
      kill_at_{};  ///< when to kill the ranks that were told to abort
};

}  // namespace argosy::launch
