#include "argosy/runs/this_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <span>
#include <string_view>
#include <utility>

#include "argosy/base/deadline.h"
#include "argosy/base/env.h"
#include "argosy/base/secrets.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/cpu.h"
#include "argosy/os/fd.h"
#include "argosy/os/subprocess.h"
#include "argosy/runs/process_start.h"

namespace argosy::runs {
namespace {

constexpr std::array<std::string_view, 26> kPrefixes{
    "ARGOSY_",         "OMP_",    "KMP_",       "GOMP_", "OPENBLAS_", "MKL_",    "BLIS_",
    "CUDA_",           "NVIDIA_", "NCCL_",      "GLOO_", "TORCH",     "PYTORCH", "PADDLE_",
    "FLAGS_",          "SLURM_",  "OMPI_COMM",  "PMI_",  "MALLOC_",   "GLIBC_",  "LD_PRELOAD",
    "LD_LIBRARY_PATH", "MASTER_", "WORLD_SIZE", "RANK",  "LOCAL_"};

std::string first_line_after(const std::string& path, std::string_view start) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(start)) {
      return std::string(strings::trim(line.substr(line.find(':') + 1)));
    }
  }
  return "";
}

/// What git prints, or nullopt: it is not there, says no, or takes longer than a file server
/// should.
std::optional<std::string> git(std::vector<std::string> args) {
  args.insert(args.begin(), "git");
  const os::UniqueFd output(::memfd_create("git", MFD_CLOEXEC));
  auto child =
      os::Subprocess::spawn({.args = args, .env = os::environ_list(), .stdout_fd = output.get()});
  if (!output || !child.ok()) {
    return std::nullopt;
  }
  const auto exit = child->wait(Deadline::after(std::chrono::seconds(2)));
  if (!exit.ok() || !*exit || !(*exit)->ok()) {
    return std::nullopt;
  }
  std::string text(size_t{1} << 12, '\0');
  const Result<size_t> size = os::read_at(output.get(), std::as_writable_bytes(std::span(text)), 0);
  text.resize(size.ok() ? *size : 0);
  return std::string(strings::trim(text));
}

}  // namespace

std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    words.push_back(word);
  }
  // The bundle starts its programs by a loader of its own.
  constexpr size_t kLoaderWords = 6;  // packaging/bundle/start.c
  if (words.size() >= kLoaderWords && words[0].ends_with("/ld-linux-x86-64.so.2") &&
      words[1] == "--argv0") {
    words[kLoaderWords - 1] = words[2];
    words.erase(words.begin(), words.begin() + kLoaderWords - 1);
  }
  // The program of the command `argosy` that sees libtorch; nobody types it.
  if (!words.empty() && words[0].ends_with("/argosy-torch")) {
    words[0].resize(words[0].size() - std::string_view("-torch").size());
  }
  return words;
}

std::map<std::string, std::string> environment_that_matters() {
  std::map<std::string, std::string> kept;
  for (const std::string& entry : os::environ_list()) {
    const std::string name = entry.substr(0, entry.find('='));
    const bool matters = std::ranges::any_of(
        kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (matters && name.size() < entry.size()) {
      kept[name] = secrets::hidden(entry).substr(name.size() + 1);
    }
  }
  return kept;
}

RunHost this_host() {
  const os::Cpu cpu = os::usable_cpu();
  utsname system{};
  ::uname(&system);
  struct sysinfo memory {};
  ::sysinfo(&memory);
  const int64_t pid = ::getpid();
  return {.name = os::host_name(),
          .system = fmt::format("{} {} {}", system.sysname, system.release, system.machine),
          .cpu = first_line_after("/proc/cpuinfo", "model name"),
          .cores = cpu.cores,
          .physical_cores = cpu.physical_cores,
          .memory_bytes = static_cast<int64_t>(memory.totalram) * memory.mem_unit,
          .pid = pid,
          .pid_start = process_start(pid).value_or(0)};
}

RunSources git_state() {
  RunSources sources;
  sources.commit = git({"rev-parse", "--verify", "-q", "HEAD"}).value_or("");
  if (!sources.commit.empty()) {
    sources.branch = git({"rev-parse", "--abbrev-ref", "HEAD"}).value_or("");
    const auto changes = git({"--no-optional-locks", "status", "--porcelain", "-uno"});
    sources.dirty = !changes.value_or("").empty();
  }
  return sources;
}

}  // namespace argosy::runs
