#include "argosy/os/cpu.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "argosy/base/strings.h"
#include "argosy/os/fd.h"
#include "argosy/os/topology.h"

namespace argosy::os {
namespace {

int count_physical(const std::vector<int>& cpus) {
  std::set<int> cores;
  for (const CpuPlace& place : cpu_places(cpus)) {
    cores.insert(place.core);
  }
  return static_cast<int>(cores.size());
}

std::optional<double> ratio(std::string_view quota, std::string_view period) {
  const std::optional<int64_t> q = strings::parse_int(strings::trim(quota));
  const std::optional<int64_t> p = strings::parse_int(strings::trim(period));
  if (!q || !p || *q <= 0 || *p <= 0) {  // "max" in version 2, -1 in version 1
    return std::nullopt;
  }
  return static_cast<double>(*q) / static_cast<double>(*p);
}

std::optional<double> limit_v2(const std::string& folder) {
  const Result<std::string> text = read_file(folder + "/cpu.max");
  if (!text.ok()) {
    return std::nullopt;
  }
  const std::vector<std::string> fields = strings::split(strings::trim(*text), ' ');
  return fields.size() == 2 ? ratio(fields[0], fields[1]) : std::nullopt;
}

std::optional<double> limit_v1(const std::string& folder) {
  const Result<std::string> quota = read_file(folder + "/cpu.cfs_quota_us");
  const Result<std::string> period = read_file(folder + "/cpu.cfs_period_us");
  return quota.ok() && period.ok() ? ratio(*quota, *period) : std::nullopt;
}

bool names_cpu_controller(const std::string& controllers) {
  const std::vector<std::string> names = strings::split(controllers, ',');
  return std::ranges::find(names, "cpu") != names.end();
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> numbers;
  if (strings::trim(text).empty()) {
    return numbers;
  }
  for (const std::string& range : strings::split(strings::trim(text), ',')) {
    const size_t dash = range.find('-');
    const std::optional<int64_t> first = strings::parse_int(range.substr(0, dash));
    const std::optional<int64_t> last =
        dash == std::string::npos ? first : strings::parse_int(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > (1 << 20)) {
      return std::nullopt;
    }
    for (int64_t number = *first; number <= *last; ++number) {
      numbers.push_back(static_cast<int>(number));
    }
  }
  return numbers;
}

std::optional<double> cgroup_cpu_limit(const std::string& membership, const std::string& mount) {
  std::optional<double> least;
  for (const std::string& line : strings::split(membership, '\n')) {
    // "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1
    const std::vector<std::string> fields = strings::split(line, ':');
    if (fields.size() < 3 || (!fields[1].empty() && !names_cpu_controller(fields[1]))) {
      continue;
    }
    const bool v2 = fields[1].empty();
    const std::string root = v2 ? mount : mount + "/" + fields[1];
    std::string path = fields[2];
    while (true) {  // from the own group up to the root, which a container sees as its own
      const std::string folder = path == "/" ? root : root + path;
      const std::optional<double> limit = v2 ? limit_v2(folder) : limit_v1(folder);
      if (limit) {
        least = std::min(least.value_or(*limit), *limit);
      }
      const size_t slash = path.rfind('/');
      if (path == "/" || slash == std::string::npos) {
        break;
      }
      path = slash == 0 ? "/" : path.substr(0, slash);
    }
  }
  return least;
}

Cpu usable_cpu() {
  const std::vector<int> cpus = affinity_cpus();
  Cpu result;
  result.cores = std::max<int>(1, static_cast<int>(cpus.size()));
  result.physical_cores = std::max(1, count_physical(cpus));
  const Result<std::string> membership = read_file("/proc/self/cgroup");
  if (membership.ok()) {
    if (const auto limit = cgroup_cpu_limit(*membership, "/sys/fs/cgroup")) {
      result.cores = std::clamp(static_cast<int>(std::ceil(*limit)), 1, result.cores);
    }
  }
#if defined(__x86_64__) || defined(__i386__)
  result.avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  result.avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#endif
  return result;
}

// Clang 14's __builtin_cpu_supports() does not know them; the kernel lists what it has enabled.
bool has_cpu_flag(std::string_view name) {
  constexpr std::size_t kFirstProcessor = 8192;  // all have the same flags
  const Result<std::string> info = read_head("/proc/cpuinfo", kFirstProcessor);
  return info.ok() && info->find(" " + std::string(name)) != std::string::npos;
}

}  // namespace argosy::os
