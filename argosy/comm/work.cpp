#include "argosy/comm/work.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/error.h"
#include "argosy/comm/operation.h"

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

void Work::wait() const {
  if (!state_) {
    return;
  }
  state_->wait();
  if (const std::exception_ptr error = state_->error()) {
    std::rethrow_exception(error);
  }
}

void Work::wait(std::chrono::milliseconds timeout) const {
  if (state_ && !state_->wait_until(Deadline::after(timeout))) {
    throw TimeoutError(
        "comm.Work",
        fmt::format("not finished after {} ms ({}). It goes on until its own limit: wait again, or "
                    "look for a rank that did not call it.",
                    timeout.count(),
                    state_->describe()));
  }
  wait();
}

bool Work::is_completed() const {
  return !state_ || state_->is_completed();
}

bool Work::is_success() const {
  return !state_ || (state_->is_completed() && !state_->error());
}

std::exception_ptr Work::exception() const {
  return state_ ? state_->error() : nullptr;
}

}  // namespace argosy::comm
