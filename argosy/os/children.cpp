#include "argosy/os/children.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "argosy/base/strings.h"
#include "argosy/os/fd.h"
#include "argosy/os/signals.h"

namespace argosy::os {
namespace {

/// Otherwise it belongs to another pid namespace, where every process has another number.
bool proc_counts_as_we_do() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self", error);
  return !error && self == std::to_string(::getpid());
}

/// Of all threads of a process, whose folder in /proc is `process`.
Result<std::vector<pid_t>> children_of(const std::string& process) {
  std::vector<pid_t> pids;
  bool listed = false;
  std::error_code error;
  std::filesystem::directory_iterator thread(process + "/task", error);
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
    return Failure::from_errno("list the children of " + process, error ? error.value() : ENOENT);
  }
  return pids;
}

/// What /proc/<pid>/stat says behind "pid (name) ", the name of which may hold blanks and brackets:
/// the state first. Empty: no such process.
std::vector<std::string> stat_of(pid_t pid) {
  const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", pid));
  const size_t close = stat.ok() ? stat->rfind(") ") : std::string::npos;
  return close == std::string::npos ? std::vector<std::string>()
                                    : strings::split(strings::trim(stat->substr(close + 2)), ' ');
}

/// "the debugger gdb (pid 12)"
std::string tracer_of(pid_t pid) {
  constexpr std::string_view kTracer = "TracerPid:";
  const Result<std::string> status = read_file(fmt::format("/proc/{}/status", pid));
  const size_t found = status.ok() ? status->find(kTracer) : std::string::npos;
  if (found == std::string::npos) {
    return "a debugger";
  }
  const size_t begin = found + kTracer.size();
  const std::string tracer(strings::trim(status->substr(begin, status->find('\n', begin) - begin)));
  const Result<std::string> name = read_file("/proc/" + tracer + "/comm");
  return name.ok() ? fmt::format("the debugger {} (pid {})", strings::trim(*name), tracer)
                   : "a debugger";
}

}  // namespace

std::optional<Stopped> stopped(pid_t pid) {
  constexpr size_t kExitCode = 49;  // field 52 of proc(5), of which two stand before the state
  const std::vector<std::string> stat = stat_of(pid);
  const std::string state = stat.empty() ? "" : stat.front();
  if (state == "t") {
    return Stopped{.by = tracer_of(pid), .traced = true};
  }
  if (state != "T") {
    return std::nullopt;
  }
  const auto signal = stat.size() > kExitCode ? strings::parse_int(stat[kExitCode]) : std::nullopt;
  return Stopped{.by =
                     signal.value_or(0) > 0 ? signal_name(static_cast<int>(*signal)) : "a signal"};
}

Result<std::vector<pid_t>> children() {
  if (!proc_counts_as_we_do()) {
    return Failure::from_errno(
        "list the children of this process by the /proc of its pid namespace", ENOENT);
  }
  return children_of("/proc/self");
}

std::vector<pid_t> with_descendants(pid_t pid, size_t most) {
  std::vector<pid_t> all{pid};
  for (size_t i = 0; i < all.size() && all.size() < most; ++i) {
    const Result<std::vector<pid_t>> its = children_of("/proc/" + std::to_string(all[i]));
    if (its.ok()) {
      all.insert(all.end(), its->begin(), its->end());
    }
  }
  all.resize(std::min(all.size(), most));
  return all;
}

std::optional<pid_t> ancestor_named(const std::string& name) {
  constexpr size_t kLongestName = 15;
  constexpr int kMost = 64;  // generations
  pid_t pid = ::getppid();
  for (int i = 0; i < kMost && pid > 0; ++i) {
    // "4127 (name) S 4100 …"; the name may hold blanks and brackets.
    const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const size_t open = stat.ok() ? stat->find('(') : std::string::npos;
    const size_t close = stat.ok() ? stat->rfind(')') : std::string::npos;
    if (open == std::string::npos || close == std::string::npos || close + 4 > stat->size()) {
      return std::nullopt;
    }
    if (stat->substr(open + 1, close - open - 1) == name.substr(0, kLongestName)) {
      return pid;
    }
    const std::string rest = stat->substr(close + 4);
    pid = static_cast<pid_t>(strings::parse_int(rest.substr(0, rest.find(' '))).value_or(0));
  }
  return std::nullopt;
}

}  // namespace argosy::os
