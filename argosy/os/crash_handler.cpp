#include "argosy/os/crash_handler.h"

#include <absl/debugging/symbolize.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/base/catalogue.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"

namespace argosy::os {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
/// A handler that hangs, often in a heap that is broken, is given up after this.
constexpr int kPatienceSeconds = 10;

/// Text of bounded length: whoever crashes cannot ask for memory.
template <size_t kSize>
class FixedText {
 public:
  void append(std::string_view text) {
    const size_t room = std::min(text.size(), kSize - size_);
    std::copy_n(text.data(), room, bytes_.data() + size_);
    size_ += room;
  }
  [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, kSize> bytes_{};
  size_t size_ = 0;
};

/// Bytes of the UTF-8 sequence that `text` begins with; 0: it begins with none.
size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  const bool whole = std::ranges::all_of(text.substr(1, length - 1), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
  });
  const auto second = length > 2 ? static_cast<unsigned char>(text[1]) : 0x90;
  const bool in_range = !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second > 0x9f) &&
                        !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second > 0x8f);
  return whole && in_range ? length : 0;
}

/// As the content of a JSON string; what is not UTF-8, or was cut, becomes question marks.
template <size_t kSize>
void append_escaped(FixedText<kSize>& json, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char c = text[0];
    const auto byte = static_cast<unsigned char>(c);
    if (length != 1) {
      json.append(length == 0 ? std::string_view("?") : text.substr(0, length));
    } else if (c == '"' || c == '\\') {
      json.append({std::array{'\\', c}.data(), 2});
    } else if (byte < 0x20) {
      json.append(std::string_view("\\u00"));
      json.append(kDigits.substr(byte >> 4, 1));
      json.append(kDigits.substr(byte & 15, 1));
    } else {
      json.append({&c, 1});
    }
    text.remove_prefix(std::max<size_t>(1, length));
  }
}

template <size_t kSize>
void append_number(FixedText<kSize>& text, uint64_t number, unsigned base) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), number, static_cast<int>(base));
  text.append({digits.data(), static_cast<size_t>(end.ptr - digits.data())});
}

/// All that is known of the crash; in static memory.
struct Crash {
  FixedText<2048> message{};      ///< of the exception, if one it was
  FixedText<8192> stack{};        ///< as it goes to standard error
  FixedText<4096> path{};         ///< of the error file, with its final zero; empty: none
  FixedText<65536> json{};        ///< room for what grows by escaping
  std::atomic_flag written = {};  ///< the first one counts
};
Crash crash;
std::terminate_handler former_terminate = nullptr;

/// "SIGSEGV at address 0x10", of the line that says so.
std::string_view first_line(std::string_view stack) {
  stack = stack.substr(0, stack.find('\n'));
  const size_t first = stack.find_first_not_of("* ");
  const size_t last = stack.find_last_not_of("* ");
  return first == std::string_view::npos ? stack : stack.substr(first, last + 1 - first);
}

/// Async-signal-safe; what cannot be written is dropped.
void put(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return;
    }
    text.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
}

/// {"message": {"message": …, "extraInfo": {"py_callstack": …, "timestamp": "<seconds>"}}}.
/// Source: PyTorch's torch/distributed/elastic/multiprocessing/errors. Async-signal-safe.
void write_error_file() {
  if (crash.path.view().empty() || crash.written.test_and_set()) {
    return;
  }
  const bool thrown = !crash.message.view().empty();
  crash.json.append(R"({"message":{"message":")");
  append_escaped(crash.json, thrown ? crash.message.view() : first_line(crash.stack.view()));
  crash.json.append(R"(","extraInfo":{"py_callstack":")");
  if (thrown) {  // torchrun shows this part alone
    append_escaped(crash.json, crash.message.view());
    append_escaped(crash.json, "\n");
  }
  append_escaped(crash.json, crash.stack.view());
  crash.json.append(R"(","timestamp":")");
  append_number(crash.json, static_cast<uint64_t>(::time(nullptr)), 10);
  crash.json.append("\"}}}\n");
  const int fd = ::open(crash.path.view().data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd >= 0) {
    put(fd, crash.json.view());
    ::close(fd);
  }
}

void tell(std::string_view text) {
  crash.stack.append(text);
  put(STDERR_FILENO, text);
}

/// "*** SIGSEGV at address 0x10 ***"
void tell_signal(int signal, const siginfo_t& info) {
  FixedText<128> line;
  line.append("*** SIG");
  line.append(::sigabbrev_np(signal));
  const bool sent = info.si_code <= 0;  // by a process: kill(), raise(), abort()
  if (sent && info.si_pid != ::getpid()) {
    line.append(" from process ");
    append_number(line, static_cast<uintptr_t>(info.si_pid), 10);
  } else if (!sent) {
    line.append(" at address 0x");
    append_number(line, reinterpret_cast<uintptr_t>(info.si_addr), 16);
  }
  line.append(" ***\n");
  tell(line.view());
}

/// From the place where the signal came: the functions in which this thread is, innermost first.
void tell_stack() {
  constexpr int kOwn = 3;  // this function, the handler, what the kernel returns through
  std::array<void*, 64> frames{};
  const int depth = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = kOwn; i < depth; ++i) {
    const void* const at = static_cast<const char*>(frames[static_cast<size_t>(i)]) - 1;
    std::array<char, 512> name{};
    FixedText<600> line;
    line.append("    @ 0x");
    append_number(line, reinterpret_cast<uintptr_t>(at), 16);
    line.append(" ");
    line.append(absl::Symbolize(at, name.data(), name.size()) ? name.data() : "(unknown)");
    line.append("\n");
    tell(line.view());
  }
}

void on_signal(int signal, siginfo_t* info, void* /*context*/) {
  const bool from_outside = info->si_code <= 0 && info->si_pid != ::getpid();
  if (from_outside &&
      ::gettid() != ::getpid()) {  // the kernel takes any thread; the main one trains
    ::tgkill(::getpid(), ::getpid(), signal);
    while (true) {
      ::pause();
    }
  }
  static std::atomic_flag entered = {};
  while (entered.test_and_set()) {
    ::pause();  // the thread that came first tells, and takes all with it
  }
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(kPatienceSeconds);
  tell_signal(signal, *info);
  tell_stack();
  write_error_file();
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // comes when this returns
}

void describe_exception() {
  const std::string type = type_of_current_exception();
  if (type.empty()) {
    crash.message.append("std::terminate() without an exception");
    return;
  }
  crash.message.append(type.c_str());
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& e) {
    crash.message.append(": ");
    crash.message.append(e.what());
  } catch (...) {  // its type is all that can be told
  }
}

/// What an Error of ours says, and where it is explained; "": it is another exception.
std::string our_error() {
  try {
    if (const std::exception_ptr current = std::current_exception()) {
      std::rethrow_exception(current);
    }
  } catch (const Error& e) {
    const std::string entry = catalogue_entry(e.what());
    return std::string("error: ") + e.what() + (entry.empty() ? "" : "\nerror: see " + entry) +
           "\n";
  } catch (...) {
    return "";
  }
  return "";
}

[[noreturn]] void on_terminate() {
  static std::atomic_flag entered = {};
  if (!entered.test_and_set()) {
    describe_exception();
    if (const std::string ours = our_error(); !ours.empty()) {
      write_error_file();
      ::signal(SIGABRT, SIG_DFL);  // no stack: the message says it all
      if (former_terminate == __gnu_cxx::__verbose_terminate_handler) {
        put(STDERR_FILENO, ours);
        std::abort();
      }
    }
  }
  former_terminate();
  std::abort();
}

/// A stack that has overflowed has no room for the handler. Of the calling thread only.
void use_another_stack() {
  static std::array<char, size_t{256} << 10> room{};
  stack_t stack{};
  stack.ss_sp = room.data();
  stack.ss_size = room.size();
  ::sigaltstack(&stack, nullptr);
}

bool anybody_handles() {
  return std::ranges::any_of(kSignals, [](int signal) {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL;
  });
}

}  // namespace

void install_crash_handler() {
  static std::atomic_flag installed = {};
  if (env::get("ARGOSY_CRASH_HANDLER").value_or("1") == "0" || installed.test_and_set() ||
      anybody_handles()) {
    return;
  }
  if (const std::optional<std::string> path = env::get("TORCHELASTIC_ERROR_FILE")) {
    if (path->size() < 4096) {
      crash.path.append({path->c_str(), path->size() + 1});
    }
  }
  absl::InitializeSymbolizer(program_invocation_name);
  std::array<void*, 1> first{};
  (void)::backtrace(first.data(), 1);  // loads what a crashed heap could not
  use_another_stack();
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK);
  for (const int signal : kSignals) {
    ::sigaction(signal, &action, nullptr);
  }
  former_terminate = std::set_terminate(on_terminate);
}

}  // namespace argosy::os
