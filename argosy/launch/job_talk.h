#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "argosy/launch/restart_policy.h"
#include "argosy/launch/session.h"
#include "argosy/launch/stop_policy.h"

namespace argosy::launch {

/// What one start of the ranks has to do with the job's journal: tells what happens here, hears
/// what all launchers tell, and knows for how long the others are waited for.
class JobTalk final {
 public:
  JobTalk(Session& session, StopPolicy& policy) : session_(session), policy_(policy) {}

  /// `event`: what happens on this node, in this start.
  void tell(JobEvent event);
  /// Takes what was told into the job's state, and stops the ranks, which are `running`, where that
  /// says so; before that calls `on_failure` where a rank of another node has failed as ranks do
  /// that lose a peer.
  void hear(bool running, const std::function<void()>& on_failure);
  /// How our ranks ended. `left_behind`: something outlived SIGKILL.
  void tell_end(std::vector<RankEnd> ends, bool left_behind);
  /// All launchers know that nothing of ours is left.
  [[nodiscard]] bool told_end() const { return told_end_; }
  /// Node 0 writes down what comes of a start in which a rank failed.
  void decide(RestartPolicy& restarts);
  /// Tells the user for whom we wait, and settles for how long.
  void wait_for_others();
  /// Something is still to be told, here or by others.
  [[nodiscard]] bool waiting() const;
  /// When wait_for_others() has something to do at the latest.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> wake() const;

 private:
  /// How long after the end of our ranks the user is told that others are waited for.
  static constexpr std::chrono::seconds kWaitingNotice{10};

  Session& session_;
  StopPolicy& policy_;
  bool decided_ = false;  ///< on node 0: what comes of this start
  bool told_end_ = false;
  bool told_waiting_ = false;                         ///< the user knows for whom we wait
  std::chrono::steady_clock::time_point ended_at_{};  ///< when told_end_ came to be
  std::optional<std::chrono::steady_clock::time_point> give_up_at_{};
  bool hurried_ = false;  ///< the others are waited for a moment only
};

}  // namespace argosy::launch
