#pragma once

#include <chrono>
#include <optional>

namespace argosy::launch {

/// Decides when the ranks get which signal. It touches no process and no clock, so tests need
/// neither.
///
/// The first reason to stop sends SIGTERM (or the user's signal). SIGKILL follows after `grace`, or
/// when the user asks again. `kPatience` after that, the launcher gives up processes that even
/// SIGKILL did not end.
class StopPolicy final {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// A process in an uninterruptible wait (a dead file server) outlives SIGKILL.
  static constexpr std::chrono::seconds kPatience{10};
  /// One request often comes as several signals: timeout(1) signals its child and then its group; a
  /// closed terminal signals the shell and the foreground group, which the shell signals too. Only
  /// a signal that comes this much later counts as a second request. SIGHUP never does.
  static constexpr std::chrono::milliseconds kOneRequest{500};
  /// The cause that ends one rank by itself (a missing file, a peer that left) often ends the
  /// others in the same moment. SIGTERM comes this much later, so that they can tell their own
  /// story first.
  static constexpr std::chrono::milliseconds kForOthersToFail{100};

  /// The same when a stopped rank was ended. The operations of the others fail then, and they say
  /// which rank it was.
  static constexpr std::chrono::milliseconds kForOthersToSay{2000};

  explicit StopPolicy(std::chrono::milliseconds grace) : grace_(grace) {}

  /// Call it when a rank failed, or when all ended and left processes behind. Only the first call
  /// counts, except that a call without delay ends an earlier delay. With `delay`, SIGTERM comes
  /// that much later.
  void stop(Time now, std::chrono::milliseconds delay = {});
  /// The user or the system sent `signal` to the launcher.
  void interrupt(int signal, Time now);
  /// Somebody sent `signal` to another launcher of the job, because ranks of all nodes get the same
  /// signal. If this launcher is later told to stop, that asks for nothing more.
  void interrupt_elsewhere(int signal, Time now);
  /// Somebody does not want to wait, neither for the end of `grace` nor for other launchers.
  void hurry(Time now);

  /// Returns the signal to send now to everything that is left. Returns each signal once.
  [[nodiscard]] std::optional<int> due(Time now);
  /// Returns the latest time at which to call due() again.
  [[nodiscard]] std::optional<Time> wake() const;

  [[nodiscard]] bool stopping() const { return stage_ != Stage::kRunning; }
  [[nodiscard]] bool killed() const { return stage_ == Stage::kKilled; }
  [[nodiscard]] bool hurried() const { return hurried_; }
  [[nodiscard]] bool given_up(Time now) const { return killed() && now >= deadline_; }
  /// Returns the first signal that the user or the system sent.
  [[nodiscard]] std::optional<int> interrupted_by() const { return interrupted_by_; }

 private:
  enum class Stage { kRunning, kDelayed, kAsked, kKilled };
  void ask(int signal, Time now);

  std::chrono::milliseconds grace_;
  Stage stage_ = Stage::kRunning;
  std::optional<int> interrupted_by_{};
  std::optional<Time> asked_here_at_{};
  std::optional<int> to_send_{};
  bool hurried_ = false;
  Time deadline_{};
};

}  // namespace argosy::launch
