#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/rank.h"
#include "argosy/launch/restart_policy.h"
#include "argosy/launch/session.h"
#include "argosy/launch/spawn_error.h"
#include "argosy/launch/stop_policy.h"
#include "argosy/launch/verdict.h"

namespace argosy::launch {

/// How one start of all ranks ended.
struct Outcome {
  int exit_code = 0;
  bool interrupted = false;                                  ///< the launcher was told to stop
  std::optional<std::chrono::milliseconds> restart_after{};  ///< nullopt: the job is over
};

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
  [[nodiscard]] RankOutput::Start routes(int number);
  [[nodiscard]] bool any_running() const;
  [[nodiscard]] bool owned(pid_t pid) const;
  [[nodiscard]] bool in_group(pid_t pid) const;
  [[nodiscard]] Adopted::Others owned_or_in_group() const;
  void look_for_what_is_left();
  void turn();
  void send_signals();
  void give_notice();
  void wait_for_events();
  [[nodiscard]] std::chrono::milliseconds time_to_wake();
  void read_signals();
  void take_ends();
  void reap_orphans();
  bool all_end_with_the_same_words();
  [[nodiscard]] Outcome report(RestartPolicy& restarts);
  [[nodiscard]] bool abandon_the_undying();

  Session& session_;
  StopPolicy policy_;
  std::vector<Rank> ranks_{};
  std::vector<Rank*> with_group_{};  ///< those of whose process group something still lives
  std::vector<pollfd> polls_{};
  Verdict verdict_{};
  std::optional<int> sent_{};  ///< the last signal that the ranks got from us
  bool left_ = false;          ///< something of the job still lives
  bool told_of_failure_ = false;
  bool told_of_signal_ = false;
};

}  // namespace argosy::launch
