#include "argosy/os/children.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "argosy/base/strings.h"
#include "argosy/os/fd.h"

namespace argosy::os {
namespace {

/// Otherwise it belongs to another pid namespace, where every process has another number.
bool proc_counts_as_we_do() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self", error);
  return !error && self == std::to_string(::getpid());
}

}  // namespace

Result<std::vector<pid_t>> children() {
  if (!proc_counts_as_we_do()) {
    return Failure::from_errno(
        "list the children of this process by the /proc of its pid namespace", ENOENT);
  }
  std::vector<pid_t> pids;
  bool listed = false;
  std::error_code error;
  std::filesystem::directory_iterator thread("/proc/self/task", error);
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    const Result<std::string> list = read_file(thread->path() / "children");
    if (!list.ok()) {
      continue;  // that thread has just ended
    }
    listed = true;
    for (const std::string& word : strings::split(strings::trim(*list), ' ')) {
      if (const auto pid = strings::parse_int(word)) {
        pids.push_back(static_cast<pid_t>(*pid));
      }
    }
  }
  if (!listed) {
    return Failure::from_errno("list the children of this process", error ? error.value() : ENOENT);
  }
  return pids;
}

}  // namespace argosy::os
