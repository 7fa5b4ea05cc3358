#include "argosy/events/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "argosy/base/env.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/base/terminal.h"
#include "argosy/base/text.h"

namespace argosy::events {

ProgressStyle automatic_style(std::FILE* out) {
  const std::optional<std::string> wanted = env::get("ARGOSY_PROGRESS");
  if (wanted == "bar" || (wanted == "tty" && !terminal::is_file(fileno(out)))) {
    return ProgressStyle::kBar;
  }
  if (wanted == "off") {
    return ProgressStyle::kOff;
  }
  if (wanted && wanted != "tty" && wanted != "plain" && wanted != "lines") {
    static std::once_flag once;
    std::call_once(once, [&] {
      log::warn("ARGOSY_PROGRESS=\"{}\" is not bar, plain or off; using plain", *wanted);
    });
  }
  return !wanted && terminal::redraws(fileno(out)) ? ProgressStyle::kBar : ProgressStyle::kLines;
}

namespace {

ProgressStyle resolve(const ProgressBarOptions& options) {
  return options.style == ProgressStyle::kAuto ? automatic_style(options.out) : options.style;
}

/// `head` and what has room after it in `columns` (0: all): the time stays longest, a part is never
/// cut.
std::string fitted(const std::string& head, std::vector<std::string> parts, int columns) {
  const auto whole = [&] { return fmt::format("{}{}", head, fmt::join(parts, "")); };
  if (columns <= 0) {
    return whole();
  }
  const auto room = static_cast<size_t>(columns);
  while (strings::columns(whole()) > room && !parts.empty()) {
    parts.erase(parts.end() - std::min<ptrdiff_t>(2, std::ssize(parts)));
  }
  return std::string(strings::first_columns(whole(), room));
}

int width_of(const ProgressBarOptions& options) {
  return options.columns > 0 ? options.columns : terminal::columns(fileno(options.out));
}

}  // namespace

std::string clock_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) {
    return "?";
  }
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

ProgressBar::ProgressBar(ProgressBarOptions options) : options_(std::move(options)) {
  options_.style = resolve(options_);
  start_ = options_.now();
  // A bar shows itself at once; a plain line is worth writing only after a while.
  next_draw_ = options_.style == ProgressStyle::kBar ? start_ : start_ + options_.line_interval;
}

ProgressBar::ProgressBar(ProgressBar&& other) noexcept
    : options_(std::move(other.options_)),
      start_(other.start_),
      next_draw_(other.next_draw_),
      done_(other.done_),
      values_(std::move(other.values_)),
      finished_(std::exchange(other.finished_, true)),
      line_open_(std::exchange(other.line_open_, false)) {}

ProgressBar::~ProgressBar() {
  if (line_open_) {
    std::fputc('\n', options_.out);
    std::fflush(options_.out);
  }
}

void ProgressBar::show(const std::string& name, double value) {
  show_text(name, fmt::format("{:#.4g}", value));
}

void ProgressBar::show_share(const std::string& name, double share) {
  show_text(name, fmt::format("{:.0f} %", std::floor(100 * share + 0.5)));
}

void ProgressBar::show_text(const std::string& name, std::string text) {
  for (auto& [known, old] : values_) {
    if (known == name) {
      old = std::move(text);
      return;
    }
  }
  values_.emplace_back(name, std::move(text));
}

double ProgressBar::seconds() const {
  return std::chrono::duration<double>(options_.now() - start_).count();
}

void ProgressBar::advance(int64_t items) {
  done_ += items;
  const bool complete = options_.total > 0 && done_ >= options_.total;  // finish() tells of that
  if (options_.style == ProgressStyle::kOff || complete || options_.now() < next_draw_) {
    return;
  }
  draw();
}

void ProgressBar::finish() {
  if (finished_) {
    return;
  }
  finished_ = true;
  if (options_.style != ProgressStyle::kOff) {
    draw();
  }
}

void ProgressBar::draw() {
  const bool bar = options_.style == ProgressStyle::kBar;
  next_draw_ = options_.now() + (bar ? options_.bar_interval : options_.line_interval);
  if (bar) {
    // One column stays free: some terminals wrap when the last one is written.
    std::string text = line(std::max(1, width_of(options_) - 1));
    fmt::print(options_.out, "\r{}\x1b[K{}", text, finished_ ? "\n" : "");
    line_open_ = !finished_;
  } else {
    fmt::print(options_.out, "{}\n", line(0));
  }
  std::fflush(options_.out);
}

std::string ProgressBar::line(int columns) const {
  const double elapsed = std::max(seconds(), 1e-9);
  const double rate = static_cast<double>(done_) / elapsed;
  std::vector<std::string> parts;
  for (const auto& [name, value] : values_) {
    parts.push_back(fmt::format("  {} {}", name, value));
  }
  parts.push_back(fmt::format("  {} {}/s", text::count(std::llround(rate)), options_.unit));
  if (finished_) {
    parts.push_back(fmt::format("  in {}", clock_time(elapsed)));
  } else if (options_.total > 0) {
    const auto left = static_cast<double>(options_.total - done_);
    parts.push_back(fmt::format("  {} left", rate > 0 ? clock_time(left / rate) : "?"));
  }
  const std::string label = options_.label.empty() ? "" : options_.label + " ";
  if (options_.total <= 0) {
    return fitted(fmt::format("{}{} {}", label, text::count(done_), options_.unit), parts, columns);
  }
  const double share =
      std::clamp(static_cast<double>(done_) / static_cast<double>(options_.total), 0.0, 1.0);
  const std::string percent = fmt::format("{:3}%", static_cast<int>(share * 100));
  const std::string tail = fmt::format("{}", fmt::join(parts, ""));
  const int room = columns - static_cast<int>(strings::columns(label + percent + tail)) - 3;
  if (room < 5) {
    return fitted(label + percent, parts, columns);
  }
  const int cells = std::min(room, 30);
  const int filled = static_cast<int>(share * cells);
  std::string bar(static_cast<size_t>(filled), '=');
  bar += filled < cells ? ">" : "";
  return fmt::format("{}[{:<{}}] {}{}", label, bar, cells, percent, tail);
}

}  // namespace argosy::events
