#include "argosy/runs/process_start.h"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "argosy/base/strings.h"

namespace argosy::runs {

std::optional<int64_t> process_start(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) {
    return std::nullopt;
  }
  const size_t name_end = text.rfind(')');  // names may hold spaces and brackets
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  const std::vector<std::string> fields = strings::split(text.substr(name_end + 1), ' ');
  constexpr size_t kState = 1;   // field 3, the first after the name, after an empty piece
  constexpr size_t kStart = 20;  // field 22
  if (fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X") {
    return std::nullopt;
  }
  return strings::parse_int(fields[kStart]);
}

}  // namespace argosy::runs
