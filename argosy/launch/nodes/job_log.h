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
    kInterrupted,  ///< somebody stopped the launcher of `node` by `signal`: the job ends; SIGKILL:
                   ///< a second request, which wants no wait
    kEnded,        ///< all ranks of `node` have ended: `ends`
    kLost,         ///< the launcher of `node` is gone, or silent: the job ends
    kDecided,      ///< node 0 decides what follows a start in which a rank failed
  };
  Kind kind = Kind::kFailed;
  int node = 0;
  int restart = 0;  ///< the start of the ranks that it is about
  int signal = 0;
  std::vector<RankEnd> ends{};  ///< kFailed: one end; kEnded: all, in order
  bool left_behind = false;     ///< kEnded: a process outlived SIGKILL
  int64_t wait_ms = -1;         ///< kDecided: the wait before all start again; -1: they do not
  std::string text{};           ///< kDecided: the decision for people: "restart 1 of 3 now"
  int64_t at_us = 0;  ///< kLost: when `node` may have been heard last, as in RankEnd; 0: node 0
                      ///< itself is lost, and only it could say

  [[nodiscard]] std::string to_json() const;
  /// Errors: RendezvousError (not our form).
  [[nodiscard]] static JobEvent from_json(const std::string& text);
};

/// The state of the present start of all ranks, as the journal tells it. Every launcher feeds it
/// the same events in the same order, and node 0 writes down what follows from them, so all come to
/// the same conclusion. It touches no process.
///
/// Events about a later start wait for begin(). An interruption and a lost launcher concern the
/// job, so they count for every start from then on.
class JobState final {
 public:
  explicit JobState(int nodes) : ended_(static_cast<size_t>(nodes), false) {}

  void add(const JobEvent& event);
  /// Forgets the start before `restart`, and applies the events that came already about this one.
  void begin(int restart);

  /// True if all must stop: a rank failed, a node was lost, or somebody interrupted.
  [[nodiscard]] bool stopping() const { return failed_ || !lost_.empty() || interrupted_by_; }
  /// True if nothing more will be told about this start: every node has ended or is lost, and node
  /// 0 has decided if there is something to decide. Also true if node 0 is lost, because nobody
  /// tells anything then.
  [[nodiscard]] bool over() const;
  /// True if every node has ended or is lost, a rank failed, and all could start again.
  [[nodiscard]] bool undecided() const;
  /// Returns what node 0 decided.
  [[nodiscard]] const std::optional<JobEvent>& decision() const { return decision_; }
  /// Returns the nodes that have neither ended nor are lost.
  [[nodiscard]] std::vector<int> awaited() const;

  [[nodiscard]] std::optional<int> interrupted_by() const { return interrupted_by_; }
  /// Returns the nodes that left before they had ended. Node 0 counts even after it had ended,
  /// because the others need it.
  [[nodiscard]] const std::vector<int>& lost_nodes() const { return lost_; }
  /// Returns the earliest time at which one of them may have been heard last. nullopt: none is
  /// lost.
  [[nodiscard]] std::optional<int64_t> lost_since_us() const { return lost_since_us_; }
  /// Returns the nodes whose launchers are gone, whether they had ended or not.
  [[nodiscard]] const std::set<int>& gone_nodes() const { return gone_; }
  /// True if all could start again: none is gone, nothing was left behind, nobody interrupted.
  [[nodiscard]] bool may_restart() const {
    return gone_.empty() && !left_behind_ && !interrupted_by_;
  }
  /// True if a process outlived SIGKILL on some node.
  [[nodiscard]] bool something_left() const { return left_behind_; }

  /// Returns the end of the rank of all nodes that failed first. nullopt: none failed by itself, or
  /// only after somebody had told the job to stop. For a node that was lost before it could tell
  /// all, it is what the node told when the rank failed.
  [[nodiscard]] std::optional<RankEnd> first_failure() const;
  /// Returns all other known ends, by time.
  [[nodiscard]] std::vector<RankEnd> others() const;

 private:
  void lose(int node, int64_t at_us);
  [[nodiscard]] bool all_ended() const { return awaited().empty(); }

  int restart_ = 0;
  std::vector<bool> ended_;
  std::vector<RankEnd> ends_{};
  std::vector<JobEvent> failures_{};  ///< kFailed events of nodes that have not ended
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
