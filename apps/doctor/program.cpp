#include "apps/doctor/program.h"

#include <sys/mman.h>

#include <cerrno>
#include <csignal>
#include <span>

#include "argosy/os/fd.h"

namespace argosy::doctor {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMostOutput = size_t{1} << 20;

/// Waits for the end, which need not come.
std::optional<os::Exit> end_of(os::Subprocess& child, const RunOptions& options) {
  const Deadline deadline = Deadline::after(options.patience);
  while (true) {
    const auto end = child.wait(deadline.sooner(Deadline::after(1s)));
    if (end.ok() && *end) {
      return *end;
    }
    if (!end.ok() || deadline.expired()) {
      break;
    }
    if (options.meanwhile) {
      options.meanwhile();
    }
  }
  (void)child.signal(SIGKILL);
  if (const auto killed = child.wait(Deadline::after(2s)); !killed.ok() || !*killed) {
    child.abandon();
  }
  return std::nullopt;
}

}  // namespace

Result<Ran> run_program(const std::vector<std::string>& args, const RunOptions& options) {
  // A file and not a pipe: nobody has to read it while the program runs.
  const os::UniqueFd file(::memfd_create("doctor", MFD_CLOEXEC));
  if (!file) {
    return Failure::from_errno("memfd_create", errno);
  }
  std::vector<std::string> env = options.variables;  // of two of a name the first one counts
  const std::vector<std::string> own = os::environ_list();
  env.insert(env.end(), own.begin(), own.end());
  Result<os::Subprocess> child = os::Subprocess::spawn(
      {.args = args, .env = std::move(env), .stdout_fd = file.get(), .stderr_fd = file.get()});
  if (!child.ok()) {
    return std::move(child).failure();
  }
  Ran ran{.end = end_of(*child, options)};
  ran.output.resize(kMostOutput);
  const Result<size_t> size =
      os::read_at(file.get(), std::as_writable_bytes(std::span(ran.output)), 0);
  ran.output.resize(size.ok() ? *size : 0);
  return ran;
}

}  // namespace argosy::doctor
