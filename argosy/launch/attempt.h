#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "argosy/base/wall_clock.h"
#include "argosy/launch/environment.h"
#include "argosy/launch/hang_watch.h"
#include "argosy/launch/job_talk.h"
#include "argosy/launch/leftovers.h"
#include "argosy/launch/outcome.h"
#include "argosy/launch/ranks.h"
#include "argosy/launch/restart_policy.h"
#include "argosy/launch/session.h"
#include "argosy/launch/stop_policy.h"
#include "argosy/rendezvous/missed_ranks.h"

namespace argosy::launch {

/// Starts all ranks once and supervises them until nothing of them is left. run() is the loop; each
/// private function is one step of it.
class Attempt final {
 public:
  explicit Attempt(Session& session);

  /// Starts the ranks and returns when all have ended. After a failure it asks `restarts` what to
  /// do.
  [[nodiscard]] Outcome run(RestartPolicy& restarts);

 private:
  /// The first of our ranks to fail.
  struct FirstFailure {
    RankEnd end{};
    std::chrono::steady_clock::time_point seen_at{};
    bool told = false;  ///< The user was told while the others still stop.
  };

  void turn(RestartPolicy& restarts);
  void send_signals();
  void give_notice();
  void wait_for_events();
  [[nodiscard]] std::chrono::milliseconds time_to_wake();
  void read_signals();
  void suspend_or_resume(int signal);
  void take_ends();
  void judge(std::vector<RankEnd> batch);
  /// What becomes of the others of a job with servers when one of its processes was killed. A
  /// server is missed while another one lives, which has a copy of what it had.
  [[nodiscard]] rendezvous::MissedRank if_killed(const RankEnd& end) const;
  /// Starts it again, as often as --max_restarts allows. True: the rank has not ended.
  [[nodiscard]] bool replace(const RankEnd& killed);
  /// Tells all that the others go on without it.
  void miss(const RankEnd& killed);
  [[nodiscard]] RoleOfRank role_of(int rank) const;
  [[nodiscard]] std::string name_of(int rank) const;
  void place(RankEnd& end, std::chrono::steady_clock::time_point at) const;
  void talk(RestartPolicy& restarts);
  void tell_of_spawn_failure(const SpawnError& error);
  void hear();
  void tell_end();
  [[nodiscard]] Outcome report();

  Session& session_;
  StopPolicy policy_;
  JobTalk talk_{session_, policy_};
  Ranks ranks_{session_};
  HangWatch hangs_{session_, ranks_.all()};
  Leftovers leftovers_{session_, ranks_.all()};
  std::vector<pollfd> polls_{};
  int64_t turn_ = 0;                        ///< The round of the loop.
  std::vector<RankEnd> ends_{};             ///< The ends of our ranks, in order.
  std::optional<RankEnd> spawn_failure_{};  ///< The end of the rank that could not start.
  std::map<int, int> replaced_{};           ///< How often each rank was started again alone.
  std::optional<FirstFailure> first_{};
  WallClock wall_{};  ///< It is set again at the first end, so that later ends keep their order.
  std::optional<int> sent_{};  ///< The last signal that the ranks got from us.
  bool told_of_signal_ = false;
};

}  // namespace argosy::launch
