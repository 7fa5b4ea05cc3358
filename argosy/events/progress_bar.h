#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace argosy::events {

/// How progress is drawn. kAuto: a bar that redraws itself on a terminal, else plain lines. `argosy
/// launch` says in ARGOSY_PROGRESS if it leads to a terminal.
enum class ProgressStyle { kAuto, kBar, kLines, kOff };

/// Returns what kAuto means for `out`: the launcher's word first, because a rank's stdout is its
/// pipe.
[[nodiscard]] ProgressStyle automatic_style(std::FILE* out);

struct ProgressBarOptions {
  std::string label = "";      ///< text before the bar: "epoch 2/3"
  int64_t total = 0;           ///< items to do; 0: not known, so there is no bar and no time left
  std::string unit = "items";  ///< name of the items in the rate: "images"
  ProgressStyle style = ProgressStyle::kAuto;
  std::FILE* out = stdout;
  int columns = 0;  ///< width of a bar's line; 0: the terminal's, else 80
  /// Shortest time between two drawings of a bar. A shorter one only costs time.
  std::chrono::milliseconds bar_interval{100};
  /// Shortest time between two plain lines.
  std::chrono::milliseconds line_interval{5000};
  /// The clock, for tests.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Shows how far a long piece of work is, how fast it goes and how long it will take.
///
///     ProgressBar bar({.label = "epoch 1/3", .total = 60000, .unit = "images"});
///     for (auto& batch : loader) { …; bar.show("loss", loss); bar.advance(batch_size); }
///     bar.finish();
///     // epoch 1/3 [=========>          ]  47% loss 0.4213  8,412 images/s  0:02 left
///
/// Not thread-safe. Cost: advance() reads the clock once, and draws at most once per interval.
class ProgressBar final {
 public:
  explicit ProgressBar(ProgressBarOptions options);
  /// Ends a half-drawn line, so that an error message starts on its own.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ProgressBar(ProgressBar&& other) noexcept;
  ProgressBar& operator=(ProgressBar&&) = delete;

  /// Sets a value that the next drawings show beside the bar, with four significant digits.
  void show(const std::string& name, double value);
  /// Sets a share of the whole, 0 to 1, shown as "input-bound 12 %".
  void show_share(const std::string& name, double share);
  void advance(int64_t items);
  /// Draws the final state with the total time instead of the time left. Idempotent.
  void finish();

  [[nodiscard]] int64_t done() const { return done_; }
  [[nodiscard]] double seconds() const;

 private:
  void show_text(const std::string& name, std::string text);
  void draw();
  [[nodiscard]] std::string line(int columns) const;

  ProgressBarOptions options_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point next_draw_;
  int64_t done_ = 0;
  std::vector<std::pair<std::string, std::string>> values_;  // names, and how they are written
  bool finished_ = false;
  bool line_open_ = false;
};

/// Returns "0:07", "12:34" or "3:04:05".
[[nodiscard]] std::string clock_time(double seconds);

}  // namespace argosy::events
