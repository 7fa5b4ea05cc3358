#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::launch {

/// Cuts a stream of bytes into lines. It takes any bytes; only '\n' ends a line.
///
/// Memory: an unterminated line of kLongest bytes is passed on as if it had ended there. So a
/// program that never writes '\n' costs no more than that.
class LineBuffer final {
 public:
  static constexpr size_t kLongest = size_t{64} << 10;
  using Sink = std::function<void(std::string_view line)>;  ///< without the '\n'

  /// Passes the lines that `bytes` complete to `sink`, in order.
  void add(std::string_view bytes, const Sink& sink);
  /// Call it when the stream has ended. Passes on the rest, if there is any.
  void finish(const Sink& sink);
  /// Drops the part of the unfinished line that a '\r' has overwritten. It is for terminals, where
  /// a progress bar may run for hours without ending its line.
  void drop_redrawn();
  /// Returns the bytes after the last '\n'.
  [[nodiscard]] std::string_view unfinished() const { return unfinished_; }

 private:
  std::string unfinished_;
};

/// The last lines of a rank, for the report of its failure.
class Tail final {
 public:
  static constexpr size_t kLines = 20;
  static constexpr size_t kLongest = 2000;  ///< bytes at a line's end that are kept

  /// Keeps what a terminal would show of the line. "…" replaces a beginning that is too long.
  void add(std::string_view line);
  /// Returns the part of `bytes` before its last kLines whole lines. Its lines need not be added.
  [[nodiscard]] static std::string_view forgotten(std::string_view bytes);
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  std::array<std::string, kLines> ring_;
  size_t count_ = 0;
};

/// Returns what a terminal still shows at the end of `line`: a '\r' starts it over.
[[nodiscard]] std::string_view after_last_redraw(std::string_view line);

}  // namespace argosy::launch
