#include "argosy/os/signal_flag.h"

#include <atomic>

namespace argosy::os {
namespace {

std::atomic<int> received_signal{0};
std::atomic<bool> taken{false};
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  received_signal.store(signal, std::memory_order_relaxed);
}

}  // namespace

SignalFlag::SignalFlag(std::initializer_list<int> signals) {
  if (signals.size() == 0 || taken.exchange(true)) {
    return;
  }
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = note;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : signals) {
    action.sa_flags = signal == SIGINT ? SA_RESTART | SA_RESETHAND : SA_RESTART;
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
