#include "argosy/comm/operation.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/transport/device_queue.h"

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
  if (!has_ended()) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  return error_;
}

void WorkState::wait() const {
  if (has_ended()) {
    return;
  }
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return has_ended(); });
}

bool WorkState::wait_until(const Deadline& deadline) const {
  if (has_ended()) {
    return true;
  }
  std::unique_lock lock(mutex_);
  return argosy::wait_until(ended_, lock, deadline, [this] { return has_ended(); });
}

void Operation::set_end_on_device(std::shared_ptr<transport::DeviceMark> end) {
  const std::lock_guard lock(mutex_);
  end_on_device_ = std::move(end);
  ended_.notify_all();
}

std::shared_ptr<transport::DeviceMark> Operation::end_on_device() const {
  const std::lock_guard lock(mutex_);
  return end_on_device_;
}

void Operation::wait() const {
  if (on_device) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return end_on_device_ != nullptr || has_ended(); });
  } else {
    WorkState::wait();
  }
  if (const auto end = end_on_device()) {
    end->hold_caller();
  }
}

bool Operation::is_completed() const {
  if (!has_ended()) {
    return false;
  }
  const auto end = on_device ? end_on_device() : nullptr;
  return end == nullptr || WorkState::error() != nullptr || end->has_passed();
}

std::string Operation::describe() const {
  return seq < 0 ? std::string(info.op) : fmt::format("{}, seq {}", info.op, seq);
}

}  // namespace argosy::comm
