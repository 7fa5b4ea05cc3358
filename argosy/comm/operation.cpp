#include "argosy/comm/operation.h"

#include <fmt/format.h>

#include <utility>

namespace argosy::comm {

void WorkState::complete(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    completed_.store(true, std::memory_order_release);
    // Notified under the lock: a waiter may destroy this object as soon as it can take the lock.
    ended_.notify_all();
  }
}

std::exception_ptr WorkState::error() const {
  if (!is_completed()) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  return error_;
}

void WorkState::wait() const {
  if (is_completed()) {
    return;
  }
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return is_completed(); });
}

bool WorkState::wait_until(const Deadline& deadline) const {
  if (is_completed()) {
    return true;
  }
  std::unique_lock lock(mutex_);
  return argosy::wait_until(ended_, lock, deadline, [this] { return is_completed(); });
}

std::string Operation::describe() const {
  return seq < 0 ? std::string(info.op) : fmt::format("{}, seq {}", info.op, seq);
}

}  // namespace argosy::comm
