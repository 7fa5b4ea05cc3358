#include "apps/doctor/host.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "argosy/base/env.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/os/cpu.h"
#include "argosy/os/fd.h"
#include "argosy/os/memory.h"
#include "argosy/os/subprocess.h"

#include <gnu/libc-version.h>

namespace argosy::doctor {
namespace {

using Verdict = Finding::Verdict;
using namespace std::chrono_literals;

constexpr int64_t kGiB = int64_t{1} << 30;

std::string file_text(const std::string& path) {
  Result<std::string> text = os::read_file(path);
  return text.ok() ? *std::move(text) : "";
}

Finding system() {
  std::string name = "unknown system";
  for (const std::string& line : strings::split(file_text("/etc/os-release"), '\n')) {
    constexpr std::string_view kName = "PRETTY_NAME=";
    if (line.starts_with(kName)) {
      name = line.substr(kName.size());
      std::erase(name, '"');
    }
  }
  utsname kernel{};
  ::uname(&kernel);
  return {.subject = "system",
          .text = fmt::format("{}, Linux {}, {}, glibc {}",
                              name,
                              static_cast<const char*>(kernel.release),
                              static_cast<const char*>(kernel.machine),
                              ::gnu_get_libc_version())};
}

Finding cores() {
  const os::Cpu cpu = os::usable_cpu();
  const int64_t all = ::sysconf(_SC_NPROCESSORS_ONLN);
  return {.subject = "cores",
          .text = fmt::format("{} usable ({} physical) of {}{}",
                              cpu.cores,
                              cpu.physical_cores,
                              all,
                              cpu.avx512 ? ", AVX-512" : "")};
}

Finding memory() {
  const std::string text = file_text("/proc/meminfo");
  const int64_t total = meminfo(text, "MemTotal").value_or(0);
  const int64_t available = meminfo(text, "MemAvailable").value_or(0);
  const std::optional<int64_t> limit =
      cgroup_memory_limit(file_text("/proc/self/cgroup"), "/sys/fs/cgroup");
  const bool limited = limit && *limit < total;
  const bool short_of = std::min(available, limit.value_or(available)) < kGiB;
  return {.subject = "memory",
          .verdict = short_of ? Verdict::kNote : Verdict::kFine,
          .text = fmt::format(
              "{}, {} of it free{}",
              text::memory(total),
              text::memory(available),
              limited ? fmt::format("; the container may have {}", text::memory(*limit)) : ""),
          .advice = short_of ? "each rank takes 200 MB before it trains" : ""};
}

Finding open_files() {
  constexpr rlim_t kEnough = 4096;  // 200 ranks with their pipes, files and connections
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const bool few = limit.rlim_max < kEnough;
  return {.subject = "open files",
          .verdict = few ? Verdict::kNote : Verdict::kFine,
          .text = fmt::format("{} at once, up to {} when asked", limit.rlim_cur, limit.rlim_max),
          .advice = few ? "the launcher needs about 10 for each rank: raise LimitNOFILE, or "
                          "/etc/security/limits.conf"
                        : ""};
}

Finding processes() {
  constexpr rlim_t kEnough = 1000;  // a rank has some 20 threads, which count
  rlimit limit{};
  ::getrlimit(RLIMIT_NPROC, &limit);
  const bool few = limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < kEnough;
  return {.subject = "processes",
          .verdict = few ? Verdict::kNote : Verdict::kFine,
          .text = limit.rlim_cur == RLIM_INFINITY
                      ? "no limit"
                      : fmt::format("{} at once, threads included", limit.rlim_cur),
          .advice = few ? "a rank has about 20 threads: raise ulimit -u" : ""};
}

/// What is free in the file system of `folder`; nullopt: it is not there.
std::optional<int64_t> free_space(const std::string& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

Finding dev_shm() {
  constexpr int64_t kSmall = int64_t{256} << 20;
  const std::optional<int64_t> room = free_space("/dev/shm");
  const bool small = !room || *room < kSmall;
  return {.subject = "/dev/shm",
          .verdict = small ? Verdict::kNote : Verdict::kFine,
          .text = room ? text::memory(*room) + " free" : "not there",
          .advice = small ? "Argosy does without; data loaders of Python programs do not: docker "
                            "run --shm-size=1g"
                          : ""};
}

Finding shared_memory() {
  const Result<os::SharedMemory> memory = os::SharedMemory::create("doctor", 1 << 20);
  return {
      .subject = "shared memory",
      .verdict = memory.ok() ? Verdict::kFine : Verdict::kBad,
      .text = memory.ok() ? "works" : memory.failure().what,
      .advice = memory.ok() ? "" : "memfd_create is refused: see the container's seccomp profile"};
}

Finding temporary_files() {
  const std::string folder = env::get("TMPDIR").value_or("/tmp");
  const std::optional<int64_t> room = free_space(folder);
  const bool writable = ::access(folder.c_str(), W_OK) == 0;
  const bool small = room && *room < kGiB;
  return {.subject = "temporary files",
          .verdict = !writable ? Verdict::kBad
                     : small   ? Verdict::kNote
                               : Verdict::kFine,
          .text = !room       ? folder + " is not there"
                  : !writable ? folder + " cannot be written"
                              : fmt::format("{} free in {}", text::memory(*room), folder),
          .advice = !writable ? "set TMPDIR to a folder of yours" : ""};
}

/// Pidfds came with Linux 5.2; some containers refuse them.
Finding supervision() {
  Result<os::Subprocess> child =
      os::Subprocess::spawn({.args = {"true"}, .env = os::environ_list()});
  if (child.ok()) {
    const auto end = child->wait(Deadline::after(10s));
    if (end.ok() && *end && (*end)->ok()) {
      return {.subject = "supervision", .text = "processes can be started and watched"};
    }
  }
  return {.subject = "supervision",
          .verdict = Verdict::kBad,
          .text = child.ok() ? "a process did not end" : child.failure().what,
          .advice = "argosy launch needs Linux 5.4 or newer, with clone and pidfd_open allowed"};
}

Finding clock() {
  timex state{};
  const int result = ::adjtimex(&state);
  const bool known = result >= 0;
  const bool synchronised = known && result != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  return {.subject = "clock",
          .verdict = synchronised ? Verdict::kFine : Verdict::kNote,
          .text = synchronised ? "synchronised"
                  : known      ? "not synchronised"
                               : "cannot be asked",
          .advice = synchronised ? ""
                                 : "on several nodes the report tells causes from consequences by "
                                   "the clocks: systemd-timesyncd or chrony"};
}

}  // namespace

std::optional<int64_t> meminfo(const std::string& text, const std::string& name) {
  for (const std::string& line : strings::split(text, '\n')) {
    if (line.starts_with(name + ":") && line.ends_with(" kB")) {
      const std::string_view number =
          std::string_view(line).substr(name.size() + 1, line.size() - name.size() - 4);
      const std::optional<int64_t> kilobytes = strings::parse_int(strings::trim(number));
      return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> cgroup_memory_limit(const std::string& membership,
                                           const std::string& mount) {
  std::optional<int64_t> least;
  for (const std::string& line : strings::split(membership, '\n')) {
    constexpr std::string_view kVersion2 = "0::/";
    if (!line.starts_with(kVersion2)) {
      continue;
    }
    for (std::filesystem::path group = line.substr(kVersion2.size());;
         group = group.parent_path()) {
      const std::string text =
          file_text((std::filesystem::path(mount) / group / "memory.max").string());
      if (const auto limit = strings::parse_int(strings::trim(text))) {
        least = std::min(least.value_or(*limit), *limit);
      }
      if (group.empty()) {
        break;
      }
    }
  }
  return least;
}

std::vector<Finding> host_findings() {
  return {system(),
          cores(),
          memory(),
          open_files(),
          processes(),
          shared_memory(),
          dev_shm(),
          temporary_files(),
          supervision(),
          clock()};
}

}  // namespace argosy::doctor
