#pragma once

#include <chrono>
#include <optional>

namespace argosy::launch {

/// Decides when the ranks get which signal. Knows no processes and no clock: tested without either.
///
/// The first reason to stop sends SIGTERM (or the user's signal); `grace` later, or when the user
/// asks again, comes SIGKILL; `kPatience` after that, giving up on what even that does not end.
class StopPolicy final {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// A process in an uninterruptible wait (a dead file server) outlives SIGKILL.
  static constexpr std::chrono::seconds kPatience{10};
  /// One request often comes as several signals: timeout(1) signals its child and then its group, a
  /// closed terminal the shell and the foreground group, which the shell tells as well. Only what
  /// comes so much later was asked for again, and SIGHUP never is.
  static constexpr std::chrono::milliseconds kOneRequest{500};
  /// What makes one rank end by itself (a missing file, a peer that left) often ends the others in
  /// the same moment. That much later they can tell their own story, which SIGTERM would replace.
  static constexpr std::chrono::milliseconds kForOthersToFail{100};

  /// A rank that was stopped and ended for that: the others, whose operations fail now, say who it
  /// was.
  static constexpr std::chrono::milliseconds kForOthersToSay{2000};

  explicit StopPolicy(std::chrono::milliseconds grace) : grace_(grace) {}

  /// A rank failed, or all ended and left processes behind. Only the first call counts, except that
  /// one without delay ends the delay of an earlier one. With `delay`, SIGTERM comes that much
  /// later.
  void stop(Time now, std::chrono::milliseconds delay = {});
  /// The user or the system sent `signal` to the launcher.
  void interrupt(int signal, Time now);
  /// The same to another launcher of the job, of which this one hears: ranks of all nodes get the
  /// same signal. That this launcher is told to stop later asks for nothing more.
  void interrupt_elsewhere(int signal, Time now);
  /// Somebody does not want to wait: not for the grace's end, nor for other launchers.
  void hurry(Time now);

  /// The signal to send to everything that is left, now; each one is returned once.
  [[nodiscard]] std::optional<int> due(Time now);
  /// When to ask again at the latest.
  [[nodiscard]] std::optional<Time> wake() const;

  [[nodiscard]] bool stopping() const { return stage_ != Stage::kRunning; }
  [[nodiscard]] bool killed() const { return stage_ == Stage::kKilled; }
  [[nodiscard]] bool hurried() const { return hurried_; }
  [[nodiscard]] bool given_up(Time now) const { return killed() && now >= deadline_; }
  /// The first signal that the user or the system sent.
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
