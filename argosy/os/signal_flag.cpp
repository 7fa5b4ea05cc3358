#include "argosy/os/signal_flag.h"

#include <atomic>
#include <cstdint>
#include <ctime>

namespace argosy::os {
namespace {

std::atomic<int> received_signal{0};
std::atomic<bool> taken{false};
std::atomic<int64_t> first_interrupt{0};  // when it came; 0: it did not
constexpr int64_t kOneRequestMs = 300;    // timeout(1) and terminals send one request several times

int64_t monotonic_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

std::atomic<SignalFlag::Clock> clock_of_flag{&monotonic_milliseconds};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<int64_t>::is_always_lock_free);
static_assert(std::atomic<SignalFlag::Clock>::is_always_lock_free);

void note(int signal) {
  received_signal.store(signal, std::memory_order_relaxed);
  if (signal != SIGINT) {
    return;
  }
  int64_t first = 0;
  const int64_t now = clock_of_flag.load()();
  if (!first_interrupt.compare_exchange_strong(first, now) && now - first > kOneRequestMs) {
    ::signal(SIGINT, SIG_DFL);  // pending until the handler's end
    ::raise(SIGINT);
  }
}

}  // namespace

SignalFlag::SignalFlag(std::initializer_list<int> signals, Clock clock) {
  if (signals.size() == 0 || taken.exchange(true)) {
    return;
  }
  received_signal = 0;
  first_interrupt = 0;
  clock_of_flag = clock == nullptr ? &monotonic_milliseconds : clock;
  struct sigaction action {};
  action.sa_handler = note;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && (before.sa_flags & SA_SIGINFO) == 0 &&
        before.sa_handler == SIG_DFL && ::sigaction(signal, &action, nullptr) == 0) {
      before_.emplace_back(signal, before);
    }
  }
  if (before_.empty()) {
    taken = false;
  }
}

SignalFlag::~SignalFlag() {
  if (before_.empty()) {
    return;
  }
  for (const auto& [signal, before] : before_) {
    ::sigaction(signal, &before, nullptr);
  }
  taken = false;
}

int SignalFlag::received() const noexcept {
  return before_.empty() ? 0 : received_signal.load(std::memory_order_relaxed);
}

}  // namespace argosy::os
