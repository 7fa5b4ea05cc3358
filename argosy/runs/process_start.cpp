#include "argosy/runs/process_start.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/strings.h"
#include "argosy/os/fd.h"

namespace argosy::runs {

std::optional<int64_t> process_start(int64_t pid) {
  const Result<std::string> stat = os::read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat.ok()) {
    return std::nullopt;
  }
  const std::string_view text = strings::trim(*stat);
  const size_t name_end = text.rfind(')');  // names may hold spaces and brackets
  if (name_end == std::string_view::npos) {
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
