#include "argosy/base/text.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <ctime>

namespace argosy::text {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 ||
                           cell[0] == '-' || cell[0] == '.');
}

std::tm utc_parts(std::chrono::system_clock::time_point at) {
  return fmt::gmtime(
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(at)));
}

}  // namespace

std::string bytes(double bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, kUnits.at(unit));
}

std::string memory(int64_t bytes) {
  constexpr double kMiB = 1 << 20;
  constexpr double kGiB = 1 << 30;
  const auto number = static_cast<double>(bytes);
  return number >= kGiB ? fmt::format("{:.1f} GiB", number / kGiB)
                        : fmt::format("{:.0f} MiB", number / kMiB);
}

std::string count(int64_t number) {
  std::string digits = fmt::format("{}", number);
  const ptrdiff_t first = number < 0 ? 1 : 0;
  for (ptrdiff_t at = static_cast<ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole >= 3600) {
    return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  }
  if (whole >= 60) {
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  }
  return seconds < 10 ? fmt::format("{:.1f} s", std::max(0.0, seconds))
                      : fmt::format("{} s", whole);
}

std::string printable(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(result, is_control, '?');
  return result;
}

std::string utc(std::chrono::system_clock::time_point at) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", utc_parts(at), ((ms % 1000) + 1000) % 1000);
}

std::string utc_date(std::chrono::system_clock::time_point at) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", utc_parts(at));
}

std::string stamp(std::chrono::system_clock::time_point at) {
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::chrono::system_clock::to_time_t(at)));
}

std::string table(const std::vector<std::string>& headings,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (size_t column = 0; column < headings.size(); ++column) {
    widths.push_back(headings[column].size());
    right.push_back(!rows.empty());
    for (const std::vector<std::string>& row : rows) {
      widths[column] = std::max(widths[column], row.at(column).size());
      right[column] = right[column] && is_number(row.at(column));
    }
  }
  auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t column = 0; column < headings.size(); ++column) {
      line += column == 0 ? "" : "  ";
      line += right[column] ? fmt::format("{:>{}}", cells[column], widths[column])
                            : fmt::format("{:<{}}", cells[column], widths[column]);
    }
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = line_of(headings);
  for (const std::vector<std::string>& row : rows) {
    text += line_of(row);
  }
  return text;
}

}  // namespace argosy::text
