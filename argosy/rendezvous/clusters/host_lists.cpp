#include "argosy/rendezvous/clusters/host_lists.h"

#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::rendezvous {
namespace {

constexpr int64_t kMost = 1 << 20;

[[noreturn]] void malformed(std::string_view list, const char* expected) {
  throw ConfigError("rendezvous.clusters",
                    fmt::format("cannot read the list \"{}\": expected {}", list, expected));
}

constexpr const char* kHosts = "hosts as Slurm writes them: gpu[001-004,7],login1";

/// At commas outside brackets.
std::vector<std::string> pieces_of(std::string_view list) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char letter : list) {
    depth += letter == '[' ? 1 : letter == ']' ? -1 : 0;
    if (depth < 0 || depth > 1) {
      malformed(list, kHosts);
    }
    if (letter == ',' && depth == 0) {
      pieces.emplace_back();
    } else {
      pieces.back() += letter;
    }
  }
  if (depth != 0) {
    malformed(list, kHosts);
  }
  return pieces;
}

/// "001-003" → 001, 002, 003; "7" → 7
std::vector<std::string> numbers_of(const std::string& range, std::string_view list) {
  const size_t dash = range.find('-');
  const std::string first = range.substr(0, dash);
  const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
  const std::optional<int64_t> low = strings::parse_int(first);
  const std::optional<int64_t> high = strings::parse_int(last);
  if (!low || !high || *low < 0 || *high < *low || *high - *low >= kMost) {
    malformed(list, kHosts);
  }
  std::vector<std::string> numbers;
  for (int64_t number = *low; number <= *high; ++number) {
    numbers.push_back(fmt::format("{:0{}}", number, first.size()));
  }
  return numbers;
}

/// One piece may have several brackets: "rack[1-2]n[1-2]".
std::vector<std::string> expand(const std::string& piece, std::string_view list) {
  const size_t open = piece.find('[');
  if (open == std::string::npos) {
    return {piece};
  }
  const size_t close = piece.find(']', open);
  const std::vector<std::string> ends = expand(piece.substr(close + 1), list);
  std::vector<std::string> hosts;
  for (const std::string& range : strings::split(piece.substr(open + 1, close - open - 1), ',')) {
    for (const std::string& number : numbers_of(range, list)) {
      for (const std::string& end : ends) {
        hosts.push_back(piece.substr(0, open) + number + end);
        if (static_cast<int64_t>(hosts.size()) > kMost) {
          malformed(list, "a million hosts at most");
        }
      }
    }
  }
  return hosts;
}

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string& piece : pieces_of(list)) {
    if (piece.empty()) {
      malformed(list, kHosts);
    }
    for (std::string& host : expand(piece, list)) {
      hosts.push_back(std::move(host));
    }
  }
  return hosts;
}

std::vector<int> expand_counts(std::string_view list) {
  const auto number = [&](std::string_view text, int64_t low) {
    const int64_t value = strings::parse_int(text).value_or(-1);
    if (value < low || value > kMost) {
      malformed(list, "numbers as Slurm writes them: 2(x3),1");
    }
    return value;
  };
  std::vector<int> counts;
  for (const std::string& piece : strings::split(list, ',')) {
    const std::string_view text = piece;
    const size_t open = text.find("(x");
    int64_t times = 1;
    if (open != std::string_view::npos) {
      times = number(text.ends_with(')') ? text.substr(open + 2, text.size() - open - 3) : "", 1);
    }
    counts.insert(counts.end(),
                  static_cast<size_t>(times),
                  static_cast<int>(number(text.substr(0, open), 0)));
  }
  return counts;
}

}  // namespace argosy::rendezvous
