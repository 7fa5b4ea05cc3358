#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Writes numbers and names for people, the same way everywhere.
namespace argosy::text {

/// Returns "512 B", "1.5 MB", "243 MB": powers of 1000, as for disks and networks.
[[nodiscard]] std::string bytes(double bytes);
[[nodiscard]] inline std::string bytes(int64_t count) {
  return bytes(static_cast<double>(count));
}

/// Returns "512 MiB", "23.4 GiB": powers of 1024, as the kernel counts memory.
[[nodiscard]] std::string memory(int64_t bytes);

/// Returns "[64, 3, 224, 224]" for any range of numbers.
template <typename Sizes>
[[nodiscard]] std::string shape(const Sizes& sizes) {
  return fmt::format("[{}]", fmt::join(std::begin(sizes), std::end(sizes), ", "));
}

/// Returns the same for a tensor, or "an undefined tensor".
template <typename Tensor>
requires requires(const Tensor& tensor) {
  tensor.defined();
}
[[nodiscard]] std::string shape(const Tensor& tensor) {
  return tensor.defined() ? shape(tensor.sizes()) : "an undefined tensor";
}

/// Returns "[64, 3] Float", or "nothing" for an undefined tensor.
template <typename Tensor>
[[nodiscard]] std::string shape_and_type(const Tensor& tensor) {
  return tensor.defined() ? fmt::format("{} {}", shape(tensor), toString(tensor.scalar_type()))
                          : "nothing";
}

/// Returns "1,234,567".
[[nodiscard]] std::string count(int64_t number);

/// Returns "4.2 s", "59 s", "14 min 02 s" or "3 h 05 min". A negative time gives "0.0 s".
[[nodiscard]] std::string duration(double seconds);
[[nodiscard]] inline std::string duration(std::chrono::duration<double> time) {
  return duration(time.count());
}

/// True of a control character, which does something to a terminal.
[[nodiscard]] constexpr bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
/// Returns a stranger's text in a form that is safe for a terminal or a log: a control character
/// becomes '?'.
[[nodiscard]] std::string printable(std::string_view text);

/// Returns "2026-03-01T12:00:00.250Z".
[[nodiscard]] std::string utc(std::chrono::system_clock::time_point at);
/// Returns "2026-03-01 12:00:00 UTC".
[[nodiscard]] std::string utc_date(std::chrono::system_clock::time_point at);

/// Returns "20260301-120000" in local time. It sorts by time, and every file system takes it as a
/// name.
[[nodiscard]] std::string stamp(std::chrono::system_clock::time_point at);

/// Returns columns of text under headings. Columns that hold numbers are right-aligned:
///
///     epoch  train loss  test accuracy  images/s  seconds
///         1      0.4312        86.90 %    12,345      4.9
///
/// Each column is as wide as its longest cell. Two spaces stand between columns.
[[nodiscard]] std::string table(const std::vector<std::string>& headings,
                                const std::vector<std::vector<std::string>>& rows);

}  // namespace argosy::text
