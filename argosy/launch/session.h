#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/launch/adopted.h"
#include "argosy/launch/combined_log.h"
#include "argosy/launch/guard.h"
#include "argosy/launch/job.h"
#include "argosy/launch/nodes/control_plane.h"
#include "argosy/launch/nodes/meeting.h"
#include "argosy/launch/options.h"
#include "argosy/launch/output.h"
#include "argosy/os/exit_watch.h"
#include "argosy/os/signals.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::launch {

/// What lives as long as the launcher, however often the ranks are started: signals, the store, the
/// guard, output. Attempt works on it; agent.cpp makes it.
struct Session {
  const LaunchOptions& options;
  os::SignalFd signals;
  os::ExitWatch exits;
  Adopted adopted;
  Job job;
  Guard guard;
  Output output;
  std::unique_ptr<CombinedLog> combined{};           ///< nullptr: none
  rlim_t open_files = 0;                             ///< the ranks' limit
  std::unique_ptr<rendezvous::StoreServer> store{};  ///< of a job of one node
  std::optional<Met> met{};                          ///< with the other nodes, where there are any
  /// With the other nodes' launchers, where there are any: it goes before `met`.
  std::unique_ptr<JobJournal> journal = std::make_unique<OwnJournal>();
  JobState state{1};  ///< what the journal says
  bool guard_lost = false;
  bool told_of_closed_output = false;
  bool logs_cut = false;            ///< a file of a rank ends too early
  bool errors_shown = false;        ///< ranks wrote to standard error
  std::optional<int> stopped_by{};  ///< what came while this launcher parted from the others

  void say(const std::string& text) { output.say(text); }
  /// What every launcher of the job has to say: only node 0 says it where all come out in one
  /// place.
  void say_for_all(const std::string& text) {
    if (!options.one_output || journal->node() == 0) {
      say(text);
    }
  }
  /// Says, once, that standard output has ended, should it have.
  void tell_of_closed_output(std::string_view consequence);
  /// Do files have all that the ranks wrote, together or each for itself?
  [[nodiscard]] bool logs_are_whole() const;
  /// A reader may be slow (a pager). Nobody waits for it for ever, and after a signal hardly at
  /// all. Returns the exit code: `code`, unless the user stopped the wait or output was lost.
  [[nodiscard]] int hand_over_output(int code, bool interrupted);
};

}  // namespace argosy::launch
