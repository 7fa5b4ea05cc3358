#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::launch {

/// Cuts a stream of bytes into lines. Any bytes may come; only '\n' ends a line.
///
/// Memory: an unterminated line of kLongest bytes is given out as if it had ended there, so that a
/// program that never writes '\n' costs no more than that.
class LineBuffer final {
 public:
  static constexpr size_t kLongest = size_t{64} << 10;
  using Sink = std::function<void(std::string_view line)>;  ///< without the '\n'

  /// Gives out the lines that `bytes` complete, in order.
  void add(std::string_view bytes, const Sink& sink);
  /// The stream has ended: gives out what is left, if anything.
  void finish(const Sink& sink);
  /// Drops of the unfinished line what a '\r' has overwritten: for terminals, where a progress bar
  /// may go on for hours without ending its line.
  void drop_redrawn();
  /// What came after the last '\n'.
  [[nodiscard]] std::string_view unfinished() const { return unfinished_; }

 private:
  std::string unfinished_;
};

/// The last lines of a rank, for the report of its failure.
class Tail final {
 public:
  static constexpr size_t kLines = 20;
  static constexpr size_t kLongest = 2000;  ///< bytes at a line's end that are kept

  /// What a terminal would show of it; "…" stands for a beginning that is too long.
  void add(std::string_view line);
  /// The part of `bytes` before its last kLines whole lines: lines in it need not be added.
  [[nodiscard]] static std::string_view forgotten(std::string_view bytes);
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  std::array<std::string, kLines> ring_;
  size_t count_ = 0;
};

/// What a terminal still shows of `line` at its end: a '\r' starts over.
[[nodiscard]] std::string_view after_last_redraw(std::string_view line);

}  // namespace argosy::launch
