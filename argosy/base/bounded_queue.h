#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "argosy/base/deadline.h"

namespace argosy {

/// A first-in, first-out queue between threads that holds at most `capacity` items.
///
/// Thread-safe: any number of producers and consumers. close() wakes all of them. After it, pushes
/// are refused, and pops drain what is left and then return nullopt.
template <typename T>
class BoundedQueue final {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}

  /// Waits for room. Returns false and drops the item when the queue is closed.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) {
      return false;
    }
    items_.push_back(std::move(item));
    lock.unlock();
    filled_.notify_one();
    return true;
  }

  /// Waits for an item. nullopt: the queue is closed and drained, or the deadline passed.
  std::optional<T> pop(const Deadline& deadline = Deadline::never()) {
    std::unique_lock lock(mutex_);
    if (!wait_until(filled_, lock, deadline, [&] { return closed_ || !items_.empty(); }) ||
        items_.empty()) {
      return std::nullopt;
    }
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    room_.notify_one();
    return item;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
    room_.notify_all();
  }

  [[nodiscard]] size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::condition_variable room_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace argosy
