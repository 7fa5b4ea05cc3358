#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/error_file.h"
#include "argosy/os/subprocess.h"

namespace argosy::launch {

/// The end of one rank, as its launcher saw it and all launchers of the job are told of it.
struct RankEnd {
  int rank = -1;
  int node = 0;
  pid_t pid = 0;
  os::Exit exit{};
  int64_t at_us = 0;  ///< microseconds since 1970, by node 0's clock; 0: not known
  int64_t turn = 0;   ///< the round of its launcher's loop that saw it
  std::chrono::milliseconds ran{};
  std::string host{};  ///< where it ran; empty: a job of one node
  /// Ended by SIGKILL: was the kernel's out-of-memory killer at work on the machine since the ranks
  /// started? nullopt: the kernel does not say.
  std::optional<bool> out_of_memory{};
  std::string hung{};  ///< it stood still and was ended for that: "30 s (last: …)"; empty: not so
  /// It was stopped, and ended for that: "stopped by SIGSTOP"; `hung` says for how long.
  std::string stopped{};
  /// The exception that nobody caught: "std::runtime_error: my file is missing"; empty: none.
  std::string threw{};
  /// It still ran when the launcher sent it a signal: a consequence, never the cause.
  bool asked_to_stop = false;

  // What it left behind, once its launcher has read all of it. The first three of those only that
  // failed by themselves: the words of their victims would only cost room.
  std::vector<std::string> last_lines{};
  std::optional<ErrorNote> error{};  ///< what the rank itself said of its end
  std::string program{};             ///< what it ran, for people: nodes may run different ones
  std::string log_path{};            ///< empty: no file
  /// What its launcher showed of it on standard error just before its end; empty: nothing.
  std::string last_words{};
};

/// Has it failed, without having been asked to stop?
[[nodiscard]] bool failed_by_itself(const RankEnd& end);
/// Did a signal end it that is no reaction to the loss of a peer, as exit codes and aborts are?
[[nodiscard]] bool died_by_signal(const RankEnd& end);

/// Whether the rank has saved where it is and goes on when the same command runs again.
[[nodiscard]] bool asks_to_resume(const RankEnd& end);
/// Whether some do, and the others ended well: so does the job.
[[nodiscard]] bool ask_to_resume(const std::vector<RankEnd>& ends);

/// Which of the ranks that failed is the cause? An index into `failed`, which is not empty and in
/// the order of their ends.
///
/// Of those that ended within a millisecond of the first, or were seen in the same turn of its
/// launcher's loop: one that stood still; else one that a signal ended, SIGABRT aside, for exit
/// codes and aborts are how programs react to the loss of a peer, and a peer's connections end a
/// moment before itself; else the first.
[[nodiscard]] size_t root_cause(const std::vector<RankEnd>& failed);

}  // namespace argosy::launch
