#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/wall_clock.h"
#include "argosy/launch/hang_watch.h"
#include "argosy/launch/job_talk.h"
#include "argosy/launch/leftovers.h"
#include "argosy/launch/outcome.h"
#include "argosy/launch/rank.h"
#include "argosy/launch/restart_policy.h"
#include "argosy/launch/session.h"
#include "argosy/launch/spawn_error.h"
#include "argosy/launch/stop_policy.h"

namespace argosy::launch {

/// One start of all ranks and their supervision until nothing of them is left; run() is the loop,
/// everything else one step of it.
class Attempt final {
 public:
  explicit Attempt(Session& session);
  ~Attempt();  ///< after an exception: kills the ranks
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  Attempt(Attempt&&) = delete;
  Attempt& operator=(Attempt&&) = delete;

  /// Starts them, returns when all have ended. `restarts` is asked after a failure.
  [[nodiscard]] Outcome run(RestartPolicy& restarts);

 private:
  std::optional<SpawnError> start_ranks();
  [[nodiscard]] RankOutput::Start routes(int local);
  void open_filters();
  [[nodiscard]] std::optional<bool> was_out_of_memory() const;
  [[nodiscard]] std::string shown_program() const;
  [[nodiscard]] std::string running_ranks() const;
  [[nodiscard]] bool any_running() const;
  void turn(RestartPolicy& restarts);
  void send_signals();
  void give_notice();
  void wait_for_events();
  [[nodiscard]] std::chrono::milliseconds time_to_wake();
  void read_signals();
  void suspend_or_resume(int signal);
  void take_ends();
  void judge(std::vector<RankEnd> batch);
  [[nodiscard]] int64_t job_time_us(std::chrono::steady_clock::time_point at) const;
  [[nodiscard]] const Rank& rank_of(const RankEnd& end) const;
  [[nodiscard]] std::optional<ErrorNote> error_of(const RankEnd& end) const;
  void talk(RestartPolicy& restarts);
  void tell_of_spawn_failure(const SpawnError& error);
  void hear();
  void tell_end();
  [[nodiscard]] RankEnd with_its_words(RankEnd end) const;
  [[nodiscard]] Outcome report();

  Session& session_;
  StopPolicy policy_;
  JobTalk talk_{session_, policy_};
  std::vector<Rank> ranks_{};
  HangWatch hangs_{session_, ranks_};
  Leftovers leftovers_{session_, ranks_};
  std::optional<int64_t> oom_kills_at_start_{};
  std::shared_ptr<LineFilter> out_filter_{};  ///< of all ranks of this start; nullptr: none
  std::shared_ptr<LineFilter> err_filter_{};
  std::vector<pollfd> polls_{};
  /// Numbers of ranks that have ended and are not reaped: a debugger looks at them first, and
  /// SIGCHLD comes when it has let go.
  std::vector<uint64_t> ended_{};
  std::vector<RankEnd> ends_{};  ///< of our ranks, in order
  int64_t turn_ = 0;
  /// The first of ours to fail, and when that was seen.
  std::optional<RankEnd> first_{};
  std::chrono::steady_clock::time_point failed_at_{};
  std::optional<RankEnd> spawn_failure_{};
  WallClock wall_{};           ///< of the first failure: those after it keep their order
  std::optional<int> sent_{};  ///< the last signal that the ranks got from us
  bool told_of_failure_ = false;
  bool told_of_signal_ = false;
};

}  // namespace argosy::launch
