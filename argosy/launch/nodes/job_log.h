#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "argosy/launch/rank_end.h"

namespace argosy::launch {

/// One entry of the journal that all launchers of a job append to and read in the same order.
struct JobEvent {
  enum class Kind {
    kFailed,       ///< a rank failed on `node`: all stop
    kInterrupted,  ///< somebody told the launcher of `node` to stop, by `signal`: the job ends;
                   ///< SIGKILL: told it again, and does not want to wait
    kEnded,        ///< all ranks of `node` have ended: `ends`
    kLost,         ///< the launcher of `node` is gone, or silent: the job ends
    kDecided,      ///< node 0 says what comes of a start in which a rank failed
  };
  Kind kind = Kind::kFailed;
  int node = 0;
  int restart = 0;  ///< of which start of the ranks it tells
  int signal = 0;
  std::vector<RankEnd> ends{};  ///< kFailed: the one; kEnded: all, in order
  bool left_behind = false;     ///< kEnded: not even SIGKILL ended all of them
  int64_t wait_ms = -1;         ///< kDecided: all start again after it; -1: they do not
  std::string text{};           ///< kDecided: the same for people: "restart 1 of 3 now"
  int64_t at_us = 0;            ///< kLost: when `node` may have been heard last, as in
                                ///< RankEnd; 0: node 0 is lost, who alone could say

  [[nodiscard]] std::string to_json() const;
  /// Errors: RendezvousError (not our form).
  [[nodiscard]] static JobEvent from_json(const std::string& text);
};

/// What the journal says of the start of all ranks that this launcher is in. Every launcher feeds
/// it the same events in the same order, and node 0 writes down what follows from them: so all come
/// to the same conclusion. Knows no processes.
///
/// What was told of a later start waits for begin(); an interruption and a lost launcher concern
/// the job, hence every start from then on.
class JobState final {
 public:
  explicit JobState(int nodes) : ended_(static_cast<size_t>(nodes), false) {}

  void add(const JobEvent& event);
  /// Forgets the start before `restart`, and takes what was told of this one already.
  void begin(int restart);

  /// All have to stop: some rank failed, a node was lost, somebody interrupted.
  [[nodiscard]] bool stopping() const { return failed_ || !lost_.empty() || interrupted_by_; }
  /// Nothing more will be told of this start: every node has ended or is lost, and node 0 has
  /// decided where there is something to decide. Where node 0 is lost, nobody tells anything.
  [[nodiscard]] bool over() const;
  /// Every node has ended or is lost, a rank failed, and all could start again.
  [[nodiscard]] bool undecided() const;
  /// What node 0 decided.
  [[nodiscard]] const std::optional<JobEvent>& decision() const { return decision_; }
  /// Nodes that have neither ended nor are lost.
  [[nodiscard]] std::vector<int> awaited() const;

  [[nodiscard]] std::optional<int> interrupted_by() const { return interrupted_by_; }
  /// Those that went without having ended; node 0 also after it had, for the others need it.
  [[nodiscard]] const std::vector<int>& lost_nodes() const { return lost_; }
  /// When one of them may have been heard last, the earliest; nullopt: none is lost.
  [[nodiscard]] std::optional<int64_t> lost_since_us() const { return lost_since_us_; }
  /// Those whose launchers are not there any more, ended or not.
  [[nodiscard]] const std::set<int>& gone_nodes() const { return gone_; }
  /// All could start again: none is gone, nothing was left behind, nobody interrupted.
  [[nodiscard]] bool may_restart() const {
    return gone_.empty() && !left_behind_ && !interrupted_by_;
  }
  /// On a node something outlived SIGKILL.
  [[nodiscard]] bool something_left() const { return left_behind_; }

  /// The rank that failed first, by time, of all nodes; nullopt: none failed by itself, or only
  /// after somebody had told the job to stop. Of a node that was lost before it could tell all, it
  /// is what it told when it failed.
  [[nodiscard]] std::optional<RankEnd> first_failure() const;
  /// All other ends that are known, by time.
  [[nodiscard]] std::vector<RankEnd> others() const;

 private:
  void lose(int node, int64_t at_us);
  [[nodiscard]] bool all_ended() const { return awaited().empty(); }

  int restart_ = 0;
  std::vector<bool> ended_;
  std::vector<RankEnd> ends_{};
  std::vector<JobEvent> failures_{};  ///< kFailed, of nodes that have not ended
  bool failed_ = false;
  bool left_behind_ = false;
  std::optional<JobEvent> decision_{};
  std::optional<int> interrupted_by_{};
  std::vector<int> lost_{};
  std::optional<int64_t> lost_since_us_{};
  std::set<int> gone_{};
  std::vector<JobEvent> later_{};
};

}  // namespace argosy::launch
