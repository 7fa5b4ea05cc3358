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

/// The end of one rank, as its launcher saw it and tells all launchers of the job.
struct RankEnd {
  int rank = -1;
  int node = 0;
  pid_t pid = 0;
  os::Exit exit{};
  int64_t at_us = 0;  ///< microseconds since 1970, by node 0's clock; 0: not known
  int64_t turn = 0;   ///< the round of its launcher's loop that saw it
  std::chrono::milliseconds ran{};
  std::string host{};  ///< where it ran; empty: the job has one node
  /// For a rank that SIGKILL ended: true if the kernel's out-of-memory killer was at work on the
  /// machine since the ranks started. nullopt: the kernel does not say.
  std::optional<bool> out_of_memory{};
  std::string hung{};  ///< it was ended because it stood still: "30 s (last: …)"; empty: it was not
  /// It was ended because it was stopped: "stopped by SIGSTOP". `hung` says for how long.
  std::string stopped{};
  /// The uncaught exception: "std::runtime_error: my file is missing". Empty: there was none.
  std::string threw{};
  /// It still ran when the launcher sent it a signal, so its end is a consequence, never the cause.
  bool asked_to_stop = false;

  // The fields below hold what it left behind, once its launcher has read all of it. The first
  // three are set only for ranks that failed by themselves, because the words of their victims
  // would only take room.
  std::vector<std::string> last_lines{};
  std::optional<ErrorNote> error{};  ///< what the rank itself said about its end
  std::string program{};             ///< what it ran, for people: nodes may run different ones
  std::string log_path{};            ///< empty: no file
  /// What its launcher showed of its standard error just before its end. Empty: nothing.
  std::string last_words{};
};

/// True if it failed without having been asked to stop.
[[nodiscard]] bool failed_by_itself(const RankEnd& end);
/// True if a signal ended it. Exit codes and aborts do not count, because they are reactions to the
/// loss of a peer.
[[nodiscard]] bool died_by_signal(const RankEnd& end);

/// True if the rank has saved its state, so that the same command resumes.
[[nodiscard]] bool asks_to_resume(const RankEnd& end);
/// True if some ranks ask to resume and the others ended well. The job then asks to resume.
[[nodiscard]] bool ask_to_resume(const std::vector<RankEnd>& ends);

/// Returns the rank that caused the failure, as an index into `failed`, which is not empty and in
/// the order of the ends.
///
/// Candidates are the ranks that ended within a millisecond of the first, or were seen in the same
/// turn of its launcher's loop. Among them the cause is one that stood still, else one that a
/// signal other than SIGABRT ended, else the first. Exit codes and aborts are how programs react to
/// the loss of a peer, and the connections of a peer end a moment before the peer does.
[[nodiscard]] size_t root_cause(const std::vector<RankEnd>& failed);

}  // namespace argosy::launch
