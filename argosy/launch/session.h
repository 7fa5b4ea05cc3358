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
#include "argosy/launch/outcome.h"
#include "argosy/launch/output.h"
#include "argosy/os/exit_watch.h"
#include "argosy/os/signals.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::launch {

/// Everything that lives as long as the launcher and survives restarts of the ranks: signals, the
/// store, the guard, output. agent.cpp creates it; Attempt works on it.
struct Session {
  const LaunchOptions& options;
  os::SignalFd signals;
  os::ExitWatch exits;
  Adopted adopted;
  Job job;
  Guard guard;
  Output output;
  std::unique_ptr<CombinedLog> combined{};           ///< nullptr: no combined log
  rlim_t open_files = 0;                             ///< the ranks' limit
  std::unique_ptr<rendezvous::StoreServer> store{};  ///< only in a job of one node
  std::optional<Met> met{};  ///< the meeting with the other nodes; nullopt: one node
  /// Shared with the launchers of the other nodes, if any. Destroyed before `met`.
  std::unique_ptr<JobJournal> journal = std::make_unique<OwnJournal>();
  JobState state{1};  ///< what follows from the journal
  bool guard_lost = false;
  bool told_of_closed_output = false;
  bool logs_cut = false;            ///< a log file of a rank is incomplete
  bool errors_shown = false;        ///< ranks wrote to standard error
  std::optional<int> stopped_by{};  ///< a signal that came while the launchers said goodbye

  /// Returns the store where the ranks meet.
  [[nodiscard]] std::shared_ptr<rendezvous::Store> meeting_store() const {
    return met ? met->store : store->local();
  }
  void say(const std::string& text) { output.say(text); }
  /// Prints a message that every launcher would print. If they share one output, only node 0 prints
  /// it.
  void say_for_all(const std::string& text) {
    if (!options.one_output || journal->node() == 0) {
      say(text);
    }
  }
  /// Prints once that standard output has ended, if it has.
  void tell_of_closed_output(std::string_view consequence);
  /// True if the files hold all that the ranks wrote, in one combined log or in one per rank.
  [[nodiscard]] bool logs_are_whole() const;
  /// Waits for a limited time, and only briefly after a signal, until the readers took all output.
  /// Returns the exit code: that of `outcome`, unless the user stopped the wait or output was lost.
  [[nodiscard]] int hand_over_output(const Outcome& outcome);
};

}  // namespace argosy::launch
