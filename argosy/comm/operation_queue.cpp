#include "argosy/comm/operation_queue.h"

#include <pthread.h>

#include <utility>

namespace argosy::comm {

void OperationQueue::announce(const Item& item) const {
  if (on_enqueued_) {
    on_enqueued_(*item);
  }
}

bool OperationQueue::push(const Item& item) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      return false;
    }
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { loop(); });
    }
    item->seq = next_seq_++;
    items_.push_back(item);
  }
  announce(item);
  {
    const std::lock_guard lock(mutex_);
    item->announced = true;
  }
  changed_.notify_one();
  return true;
}

bool OperationQueue::run(const Item& item) {
  {
    std::unique_lock lock(mutex_);
    if (stopped_) {
      return false;
    }
    if (busy_ || !items_.empty()) {
      lock.unlock();
      if (!push(item)) {
        return false;
      }
      item->wait();
      return true;
    }
    item->seq = next_seq_++;
    busy_ = true;
  }
  announce(item);
  execute_(*item);
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    idle_.notify_all();
  }
  changed_.notify_one();
  return true;
}

void OperationQueue::loop() {
  pthread_setname_np(pthread_self(), "argosy-comm");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(
        lock, [this] { return !busy_ && (items_.empty() ? stopped_ : items_.front()->announced); });
    if (items_.empty()) {
      return;
    }
    Item item = std::move(items_.front());
    items_.pop_front();
    busy_ = true;
    lock.unlock();
    execute_(*item);
    item.reset();  // its last owner may be this thread: not under the lock
    lock.lock();
    busy_ = false;
    if (items_.empty()) {
      idle_.notify_all();
    }
  }
}

bool OperationQueue::drain(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return wait_until(idle_, lock, deadline, [this] { return !busy_ && items_.empty(); });
}

void OperationQueue::stop() {
  {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    if (!thread_.joinable()) {
      // Without a thread there are no items, but a caller may still be inside run().
      idle_.wait(lock, [this] { return !busy_; });
      return;
    }
  }
  thread_.join();
}

void OperationQueue::abandon() {
  if (thread_.joinable()) {
    thread_.detach();
  }
  stopped_ = true;
}

int64_t OperationQueue::pending() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(items_.size()) + (busy_ ? 1 : 0);
}

}  // namespace argosy::comm
