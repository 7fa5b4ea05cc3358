#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/launch/hang_watch.h"
#include "argosy/launch/leftovers.h"
#include "argosy/launch/rank.h"
#include "argosy/launch/session.h"
#include "argosy/launch/spawn_error.h"

namespace argosy::launch {

/// The ranks that one start runs on this node. Starts them, moves their output, sends them signals
/// and collects their ends. Decides nothing: Attempt does.
class Ranks final {
 public:
  explicit Ranks(Session& session) : session_(session) {}
  ~Ranks();  ///< Kills the ranks that an exception left running.
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  Ranks(Ranks&&) = delete;
  Ranks& operator=(Ranks&&) = delete;

  /// Starts all ranks and registers each with `hangs` and `leftovers`. Returns nullopt if all run;
  /// otherwise why one rank could not start. The ranks before that one run.
  [[nodiscard]] std::optional<SpawnError> start(HangWatch& hangs, Leftovers& leftovers);

  /// Starts a rank that has ended once more, in its place; its logs go on. Returns why it could not
  /// start. What its former process left behind is killed.
  [[nodiscard]] std::optional<SpawnError> start_again(int rank,
                                                      HangWatch& hangs,
                                                      Leftovers& leftovers);

  /// The ranks that were started, by their place on this node. They keep their addresses.
  [[nodiscard]] std::vector<Rank>& all() { return ranks_; }
  [[nodiscard]] bool any_running() const;
  [[nodiscard]] std::string running_names() const;  ///< For people: "ranks 0, 3-5".

  void signal_processes(int signal);  ///< Signals each rank's own process.
  void signal_groups(int signal);     ///< Asks each rank's process group to stop.

  /// Adds the streams that the launcher can read now.
  void add_to(std::vector<pollfd>& polls) const;
  /// Copies what the ranks have written, a bounded amount per stream.
  void forward_output();
  /// Copies the rest and gives out unfinished lines.
  void finish_output();

  /// Reaps the ranks that have ended and returns their ends, in the order of their deaths.
  [[nodiscard]] std::vector<RankEnd> reap();
  /// When the rank of `end` ended.
  [[nodiscard]] std::chrono::steady_clock::time_point time_of(const RankEnd& end) const;
  /// Returns `end` with the rank's last lines and its own error, as far as they were read.
  [[nodiscard]] RankEnd with_words(RankEnd end) const;
  /// The end of the rank that could not start because of `error`.
  [[nodiscard]] RankEnd end_of_unstarted(const SpawnError& error) const;

 private:
  void finish_output(Rank& rank);
  [[nodiscard]] Result<Rank> spawn_again(int local, HangWatch& hangs);
  [[nodiscard]] Result<Rank> spawn(int local,
                                   const std::vector<std::string>& inherited,
                                   HangWatch& hangs,
                                   std::optional<LogFile::Start> logs = {});
  [[nodiscard]] Rank::Start start_of(int local, const std::vector<std::string>& inherited) const;
  [[nodiscard]] RankOutput::Start routes(int local, std::optional<LogFile::Start> logs) const;
  [[nodiscard]] std::shared_ptr<LineFilter> open_filter(StandardStream stream) const;
  [[nodiscard]] std::string error_file(int rank) const;
  [[nodiscard]] std::optional<bool> was_out_of_memory() const;
  [[nodiscard]] std::string shown_program() const;
  [[nodiscard]] const Rank& rank_of(const RankEnd& end) const;

  Session& session_;
  std::vector<Rank> ranks_{};
  std::shared_ptr<LineFilter> out_filter_{};  ///< Shared by all ranks; nullptr: no filter.
  std::shared_ptr<LineFilter> err_filter_{};
  std::optional<int64_t> oom_kills_at_start_{};
  /// Places of ranks that have ended but cannot be reaped yet, because a debugger looks at them
  /// first. SIGCHLD comes when it lets go.
  std::vector<uint64_t> ended_{};
};

}  // namespace argosy::launch
