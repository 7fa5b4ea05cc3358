#include "argosy/launch/cause.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "argosy/os/signals.h"

namespace argosy::launch {
namespace {

constexpr int kCauseNotExecutable = 126;
constexpr int kCauseNotFound = 127;
constexpr int kBySignal = 128;  // a shell's code for its command that signal n ended: 128 + n

struct Words {
  std::string_view said;  ///< in one of the last lines
  std::string_view advice;
};

/// What programs of this field say when they end, and what helps. The first that fits counts.
constexpr auto kWords = std::to_array<Words>({
    {"error while loading shared libraries",
     "a shared library is missing: ldd PROGRAM shows which; install it, or set LD_LIBRARY_PATH"},
    {"CUDA out of memory", "the GPU's memory is used up: smaller batches, or 16-bit numbers"},
    {"CUDA driver version is insufficient",
     "the NVIDIA driver of this node is older than the program's CUDA: update the driver"},
    {"no kernel image is available", "the program was built for other GPUs than this node has"},
    {"bad_alloc", "memory is used up: smaller batches, fewer loader threads, fewer ranks"},
    {"Cannot allocate memory",
     "memory is used up, or a limit is reached: see argosy doctor, ulimit -a"},
    {"No space left on device", "a disk or /dev/shm is full: df -h shows which"},
    {"Too many open files", "raise the limit of open files: ulimit -n"},
    {"Address already in use", "another process has the port: end it, or choose another"},
    {"Connection refused", "nobody listens there: look whether the other rank has died, and how"},
    {"No module named",
     "a Python package is missing in the Python that runs the program: $PYTHON_EXEC, $VIRTUAL_ENV"},
    {"NCCL error", "NCCL_DEBUG=INFO says what NCCL tried; see argosy doctor --nodes"},
    {"Permission denied", "see who may read, write and execute what the last lines name"},
    {"No such file or directory", "see whether what the last lines name is there on this node"},
});

}  // namespace

std::string describe_code(int code) {
  if (code == kCauseNotExecutable) {
    return " (a command that cannot be executed)";
  }
  if (code == kCauseNotFound) {
    return " (a command or a library that was not found)";
  }
  const int signal = code - kBySignal;
  return signal > 0 && signal < NSIG
             ? fmt::format(" (128 + {}: {})", signal, os::signal_name(signal))
             : "";
}

std::string advice_for(const RankEnd& end) {
  const os::Exit& exit = end.exit;
  if (end.out_of_memory.value_or(false)) {
    return "smaller batches, fewer loader threads or fewer ranks; argosy doctor shows memory and "
           "its limits";
  }
  for (const Words& words : kWords) {
    const auto says = [&](const std::string& line) {
      return line.find(words.said) != std::string::npos;
    };
    // A stack may have pushed the exception out of the last lines.
    if (std::ranges::any_of(end.last_lines, says) || says(end.threw)) {
      return std::string(words.advice);
    }
  }
  switch (exit.signal != 0 ? exit.signal : exit.code - kBySignal) {
    case SIGKILL:
      return "somebody or something killed it: dmesg, the queue's limits, argosy doctor";
    case SIGBUS:
      return "df -h /dev/shm and of the disks; was a mapped file cut short?";
    case SIGSEGV:
      return std::string(end.last_lines.empty() ? "" : "the stack, if its last lines show one; ") +
             "build with -g -fsanitize=address, or run it under gdb";
    case SIGILL:
      return "build for this CPU, without -march=native on another one";
    case SIGFPE:
      return "a division by zero of whole numbers: run it under gdb";
    default:
      break;
  }
  switch (exit.signal == 0 ? exit.code : 0) {
    case 2:
      return "wrong usage, mostly: its last lines, and what it was given";
    case kCauseNotExecutable:
      return "chmod +x, and a #! line for scripts";
    case kCauseNotFound:
      return "see whether the command is there on this node and in PATH";
    default:
      return "";
  }
}

}  // namespace argosy::launch
