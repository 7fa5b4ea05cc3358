#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/rank.h"
#include "argosy/launch/session.h"
#include "argosy/os/children.h"
#include "argosy/os/heartbeat.h"

namespace argosy::launch {

/// Finds the ranks of one start that stand still, by their silence and by the kernel's word that
/// they are stopped, and ends them. Passive: the attempt's loop calls it while the job is not
/// stopping. What returns ends returns those of stopped ranks, which nothing else reports; a rank
/// that hangs ends by SIGABRT and is reaped.
class HangWatch final {
 public:
  /// `ranks`: in the order in which watch() was called for them.
  HangWatch(Session& session, std::vector<Rank>& ranks) : session_(session), ranks_(ranks) {}

  /// Adds to the environment of the next rank where it finds the page to beat on; the descriptor
  /// that it keeps for that, -1: nobody watches.
  [[nodiscard]] int watch(std::vector<std::string>& env);
  /// nullopt: nobody waits for a rank that is alone.
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_between_looks() const;
  /// Sees who is stopped, when it is time, and tells the other ranks.
  void look();
  /// Ends ranks that have stood still for --heartbeat_timeout while others wait for them.
  [[nodiscard]] std::vector<RankEnd> end_the_hung();
  /// Some rank has failed, as ranks do that lose a peer: one of ours that is stopped is the cause
  /// then, and is ended.
  [[nodiscard]] std::vector<RankEnd> end_the_stopped();
  /// The launcher was stopped by Ctrl-Z, and the ranks with it: that is no hanging.
  void begin_anew();

 private:
  /// A rank that was found stopped, the last time that it was looked at.
  struct StoppedRank {
    os::Stopped how{};
    std::chrono::steady_clock::time_point since{};  ///< seen so for the first time
    bool seen_twice = false;
    std::string word{};  ///< the key under which the other ranks read of it; "": none yet
  };

  [[nodiscard]] std::optional<os::Pulse> pulse_of(size_t local) const;
  void note(size_t local, const std::optional<os::Stopped>& now);
  void leave_word(size_t local);
  [[nodiscard]] std::shared_ptr<rendezvous::Store> store() const;
  [[nodiscard]] RankEnd end_stopped(size_t local);
  void kill_who_hangs_on();

  Session& session_;
  std::vector<Rank>& ranks_;
  /// Of the ranks, in their order; empty: nobody watches.
  std::vector<os::HeartbeatMonitor> hearts_{};
  std::vector<std::optional<StoppedRank>> stopped_{};  ///< in the order of ranks_
  std::chrono::steady_clock::time_point next_look_{};
  /// They ran since then.
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> kill_at_{};  ///< those told to abort
};

}  // namespace argosy::launch
