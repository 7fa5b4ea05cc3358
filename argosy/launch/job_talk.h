#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "argosy/launch/restart_policy.h"
#include "argosy/launch/session.h"
#include "argosy/launch/stop_policy.h"

namespace argosy::launch {

/// Connects one start of the ranks with the job's journal. It tells what happens on this node,
/// hears what all launchers tell and knows how long to wait for the others.
class JobTalk final {
 public:
  /// Whether a rank of this node still runs.
  enum class OurRanks { kRun, kEnded };
  /// What the ranks of this node left behind.
  enum class Remains { kNothing, kProcesses };  ///< kProcesses: one outlived SIGKILL

  JobTalk(Session& session, StopPolicy& policy) : session_(session), policy_(policy) {}

  /// Appends `event` of this node and this start to the journal.
  void tell(JobEvent event);
  /// Applies new events to the job's state and stops the ranks if that state says so. Calls
  /// `on_failure` first for a rank of another node that failed in the way of ranks that lose a
  /// peer. Tells the user why the ranks of this node stop, if one still runs.
  void hear(OurRanks ours, const std::function<void()>& on_failure);
  /// Tells how our ranks ended.
  void tell_end(std::vector<RankEnd> ends, Remains remains);
  /// True after tell_end(): all launchers know that none of our ranks is left.
  [[nodiscard]] bool told_end() const { return told_end_; }
  /// On node 0: decides what follows a start in which a rank failed, and writes it down.
  void decide(RestartPolicy& restarts);
  /// Tells the user which nodes we wait for, and decides for how long.
  void wait_for_others();
  /// True while this node or another one still has something to tell.
  [[nodiscard]] bool waiting() const;
  /// The latest time at which wait_for_others() has something to do.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> wake() const;

 private:
  /// The user hears that we wait for others when our ranks have been over for this long.
  static constexpr std::chrono::seconds kWaitingNotice{10};

  Session& session_;
  StopPolicy& policy_;
  bool decided_ = false;  ///< on node 0: decide() has written its decision
  bool told_end_ = false;
  bool told_waiting_ = false;                         ///< the user knows which nodes we wait for
  std::chrono::steady_clock::time_point ended_at_{};  ///< when tell_end() was called
  std::optional<std::chrono::steady_clock::time_point> give_up_at_{};
  bool hurried_ = false;  ///< wait for the others only briefly
};

}  // namespace argosy::launch
