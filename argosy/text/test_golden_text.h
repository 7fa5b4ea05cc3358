#pragma once

#include <string>
#include <vector>

#include "argosy/base/strings.h"
#include "argosy/os/fd.h"

#include <nlohmann/json.hpp>

namespace argosy::text {

/// Returns the path of a file in tests/golden/text.
inline std::string golden(const std::string& name) {
  return std::string(ARGOSY_GOLDEN_TEXT) + "/" + name;
}

/// Returns the lines of expected.jsonl that have this member.
inline std::vector<nlohmann::json> golden_lines(const char* member) {
  std::vector<nlohmann::json> lines;
  for (const std::string& line : strings::split(*os::read_file(golden("expected.jsonl")), '\n')) {
    if (!line.empty()) {
      nlohmann::json json = nlohmann::json::parse(line);
      if (json.contains(member)) {
        lines.push_back(std::move(json));
      }
    }
  }
  return lines;
}

}  // namespace argosy::text
