#include "argosy/launch/options/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::launch::values {
namespace {}  // namespace

void bad(const Given& given, std::string_view expected) {
  throw UsageError("launch.options",
                   fmt::format("{}: expected {}, got \"{}\"", given.source, expected, given.value));
}

int64_t integer(const Given& given, int64_t low, int64_t high) {
  const std::optional<int64_t> value = strings::parse_int(given.value);
  if (!value || *value < low || *value > high) {
    bad(given, fmt::format("a number from {} to {}", low, high));
  }
  return *value;
}

std::vector<int> numbers(const Given& given) {
  std::vector<int> list;
  for (const std::string& piece : strings::split(given.value, ',')) {
    const std::optional<int64_t> number = strings::parse_int(strings::trim(piece));
    if (!number || *number < 0 || *number > 65535 || std::ranges::count(list, *number) > 0) {
      bad(given, "different numbers with commas between them (0,2)");
    }
    list.push_back(static_cast<int>(*number));
  }
  return list;
}

std::vector<std::string> texts(const Given& given) {
  std::vector<std::string> list(1);
  for (size_t at = 0; at < given.value.size(); ++at) {
    const bool comma = given.value[at] == ',';
    if (comma && given.value.substr(at, 2) != ",,") {
      list.emplace_back();
      continue;
    }
    at += comma ? 1 : 0;
    list.back() += given.value[at];
  }
  std::erase(list, "");  // which every line contains
  return list;
}

StreamChoice streams(const Given& given) {
  const auto which = [&](std::string_view text) {
    const std::optional<int64_t> number = strings::parse_int(strings::trim(text));
    if (!number || *number < 0 || *number > 3) {
      bad(given,
          "0 (none), 1 (standard output), 2 (standard error) or 3 (both), or such for each "
          "local rank (0:3,1:1)");
    }
    return static_cast<int>(*number);
  };
  StreamChoice choice;
  if (given.value.find(':') == std::string::npos) {
    choice.everyone = which(given.value);
    return choice;
  }
  for (const std::string& piece : strings::split(given.value, ',')) {
    const size_t colon = std::min(piece.find(':'), piece.size());
    const auto rank = strings::parse_int(strings::trim(std::string_view(piece).substr(0, colon)));
    if (!rank || *rank < 0 || colon == piece.size()) {
      bad(given, "local ranks with their streams (0:3,1:1)");
    }
    choice.ranks[static_cast<int>(*rank)] = which(std::string_view(piece).substr(colon + 1));
  }
  return choice;
}

bool truth(const Given& given) {
  const std::string word = strings::to_lower(given.value);
  if (word == "1" || word == "true" || word == "yes" || word == "on") {
    return true;
  }
  if (word == "0" || word == "false" || word == "no" || word == "off") {
    return false;
  }
  bad(given, "nothing, true or false");
}

std::chrono::milliseconds seconds(const Given& given) {
  constexpr double kMost = 86400;
  const std::optional<double> value = strings::parse_double(given.value);
  if (!value || !(*value >= 0 && *value <= kMost)) {
    bad(given, fmt::format("seconds from 0 to {}", kMost));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(*value * 1000.0));
}

std::pair<std::string, std::string> assignment(const Given& given) {
  const size_t equals = given.value.find('=');
  if (equals == std::string::npos || equals == 0) {
    bad(given, "NAME=VALUE");
  }
  return {given.value.substr(0, equals), given.value.substr(equals + 1)};
}

int node_count(const Given& given) {
  const size_t colon = given.value.find(':');
  if (colon == std::string::npos) {
    return static_cast<int>(integer(given, 1, 65536));
  }
  if (given.value.substr(0, colon) != given.value.substr(colon + 1)) {
    throw UsageError(
        "launch.options",
        fmt::format("{} {}: a job that grows and shrinks does not work yet. Expected a "
                    "number",
                    given.source,
                    given.value));
  }
  return static_cast<int>(integer({given.value.substr(0, colon), given.source}, 1, 65536));
}

HostPort endpoint(const Given& given) {
  const size_t colon = given.value.rfind(':');
  const bool has_port =
      colon != std::string::npos &&
      (given.value.find(':') == colon || (colon > 0 && given.value[colon - 1] == ']'));
  HostPort place{.host = given.value.substr(0, has_port ? colon : std::string::npos)};
  if (place.host.size() > 2 && place.host.front() == '[' && place.host.back() == ']') {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  if (place.host.empty()) {
    bad(given, "host:port");
  }
  if (has_port) {
    place.port =
        static_cast<uint16_t>(integer({given.value.substr(colon + 1), given.source}, 0, 65535));
  }
  return place;
}

std::vector<HostPort> endpoints(const Given& given) {
  std::vector<HostPort> list;
  for (const std::string& piece : strings::split(given.value, ',')) {
    list.push_back(endpoint({std::string(strings::trim(piece)), given.source}));
  }
  return list;
}

std::vector<std::string> hosts(const Given& given) {
  std::vector<std::string> list;
  for (const std::string& piece : strings::split(given.value, ',')) {
    list.emplace_back(strings::trim(piece));
    if (list.back().empty() || std::ranges::count(list, list.back()) > 1) {
      bad(given, "different addresses with commas between them");
    }
  }
  return list;
}

os::CpuBinding cpu_binding(const Given& given) {
  const std::string word = strings::to_lower(given.value);
  if (word == "none") {
    return os::CpuBinding::kNone;
  }
  if (word == "cores" || word == "exclusive") {
    return os::CpuBinding::kCores;
  }
  if (word == "numa" || word == "node") {
    return os::CpuBinding::kNuma;
  }
  if (word == "socket") {
    return os::CpuBinding::kSocket;
  }
  bad(given,
      "none, cores (or exclusive), numa (or node) or socket; where node 0 listens is --listen");
}

std::string cpu_capability(const Given& given) {
  std::string word = strings::to_lower(given.value);
  if (word != "default" && word != "avx2" && word != "avx512") {
    bad(given, "default, avx2 or avx512");
  }
  return word;
}

bool is_on(const GivenOptions& given, std::string_view key) {
  const std::optional<Given> found = given.find(key);
  return found && truth(*found);
}

}  // namespace argosy::launch::values
