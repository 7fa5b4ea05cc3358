#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/report.h"

namespace argosy::launch {

/// The end of a rank as other nodes are told of it.
struct RemoteEnd {
  int rank = -1;
  int pid = 0;
  int code = 0;
  int signal = 0;
  int64_t at_us = 0;  ///< microseconds since 1970, by node 0's clock
  int64_t ran_ms = 0;
  bool asked_to_stop = false;
  std::vector<std::string> last_lines{};  ///< of the first failure on its node only
  std::string log_path{};
};

/// One entry of the journal that all launchers of a job append to and read in the same order.
struct JobEvent {
  enum class Kind {
    kFailed,       ///< a rank failed on `node`: all stop
    kInterrupted,  ///< somebody told the launcher of `node` to stop, by `signal`: all stop
    kEnded,        ///< all ranks of `node` have ended, nothing of them is left: `ends`
    kLost,         ///< the launcher of `node` is gone, or silent: all stop
  };
  Kind kind = Kind::kFailed;
  int node = 0;
  int restart = 0;  ///< of which start of the ranks it tells
  int signal = 0;
  std::vector<RemoteEnd> ends{};  ///< kFailed: the one; kEnded: all, in order

  [[nodiscard]] std::string to_json() const;
  /// Errors: RendezvousError (not our form).
  [[nodiscard]] static JobEvent from_json(const std::string& text);
};

/// What the journal says of one start of all ranks. Every launcher feeds it the same events in the
/// same order, hence all come to the same conclusions without asking anybody. Knows no processes.
class JobState final {
 public:
  JobState(int nodes, int restart) : ended_(static_cast<size_t>(nodes), false), restart_(restart) {}

  /// Events of other starts are left aside; a lost node stays lost.
  void add(const JobEvent& event);

  /// All have to stop: some rank failed, a node was lost, somebody interrupted.
  [[nodiscard]] bool stopping() const { return failed_seen_ || !lost_.empty() || interrupted_by_; }
  /// Every node has ended or is lost.
  [[nodiscard]] bool over() const;
  [[nodiscard]] std::optional<int> interrupted_by() const { return interrupted_by_; }
  [[nodiscard]] const std::vector<int>& lost_nodes() const { return lost_; }

  /// The rank that failed first, by time, of all nodes; nullopt: none failed by itself. Where a
  /// node was lost before any rank failed, its loss is the cause, not what ranks said of it after.
  [[nodiscard]] std::optional<RemoteEnd> first_failure() const;
  /// All other ends that are known, by time.
  [[nodiscard]] std::vector<RemoteEnd> others() const;

 private:
  std::vector<bool> ended_;
  int restart_;
  bool failed_seen_ = false;
  std::optional<int> interrupted_by_{};
  std::vector<int> lost_{};
  std::vector<RemoteEnd> ends_{};
};

}  // namespace argosy::launch
