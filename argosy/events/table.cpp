#include "argosy/events/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace argosy::events {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 ||
                           cell[0] == '-' || cell[0] == '.');
}

}  // namespace

std::string format_table(const std::vector<std::string>& headings,
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
  auto format_row = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t column = 0; column < headings.size(); ++column) {
      line += column == 0 ? "" : "  ";
      line += right[column] ? fmt::format("{:>{}}", cells[column], widths[column])
                            : fmt::format("{:<{}}", cells[column], widths[column]);
    }
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = format_row(headings);
  for (const std::vector<std::string>& row : rows) {
    text += format_row(row);
  }
  return text;
}

}  // namespace argosy::events
