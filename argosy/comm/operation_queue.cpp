#include "argosy/comm/operation_queue.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

namespace argosy::comm {

class OperationQueue::Teller final {
 public:
  explicit Teller(OperationQueue& queue) : queue_(queue), outer_(innermost) {
    innermost = this;
    queue_.tellers_.push_back(this);
  }
  ~Teller() {
    innermost = outer_;
    std::erase(queue_.tellers_, this);
  }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;
  Teller(Teller&&) = delete;
  Teller& operator=(Teller&&) = delete;

  /// It queues something, which it may wait for.
  static void may_wait(const OperationQueue& queue) {
    for (Teller* teller = innermost; teller != nullptr; teller = teller->outer_) {
      if (&teller->queue_ == &queue) {
        teller->is_late = true;
      }
    }
  }

  bool is_late = false;

 private:
  static thread_local Teller* innermost;
  OperationQueue& queue_;
  Teller* const outer_;
};
thread_local OperationQueue::Teller* OperationQueue::Teller::innermost = nullptr;

bool OperationQueue::is_awaited() const {
  return std::ranges::any_of(tellers_, [](const Teller* teller) { return !teller->is_late; });
}

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
    if (threads_.empty()) {
      add_thread();  // may throw: before the item is accepted
    }
    Teller::may_wait(*this);
    item->seq = next_seq_++;
    items_.push_back(item);
  }
  announce(item);
  const std::lock_guard lock(mutex_);
  item->announced = true;
  wake();
  return true;
}

bool OperationQueue::run(const Item& item) {
  {
    std::unique_lock lock(mutex_);
    if (stopped_) {
      return false;
    }
    if (!busy_ && items_.empty()) {
      item->seq = next_seq_++;
      busy_ = true;
      lock.unlock();
      announce(item);
      lock.lock();
      perform(lock, item, false);
      return true;
    }
  }
  if (!push(item)) {
    return false;
  }
  item->wait();
  return true;
}

void OperationQueue::wake() {
  if (busy_ || items_.empty()) {
    return;  // who is busy calls this afterwards
  }
  if (watched_ && is_awaited()) {
    return;
  }
  if (idle_ == 0) {
    try {
      add_thread();
    } catch (const std::system_error&) {
      return;  // then one of those that tell of an end takes it
    }
  }
  changed_.notify_one();
}

void OperationQueue::add_thread() {
  threads_.emplace_back([this] { loop(); });
  ++idle_;
}

void OperationQueue::perform(std::unique_lock<std::mutex>& lock, Item item, bool comes_back) {
  lock.unlock();
  execute_(*item);
  lock.lock();
  busy_ = false;
  ++ending_;
  {
    std::optional<Teller> teller;
    if (comes_back) {
      teller.emplace(*this);
    }
    wake();
    lock.unlock();
    end_(*item);
    item.reset();  // its last owner may be this thread: not under the lock
    lock.lock();
  }
  --ending_;
  if (at_rest()) {
    rested_.notify_all();
  }
}

bool OperationQueue::await_turn(std::unique_lock<std::mutex>& lock) {
  if (can_take()) {
    return true;  // this thread has just come back
  }
  while (true) {
    changed_.wait(lock, [this] {
      return items_.empty() ? stopped_ : can_take() && !(watched_ && is_awaited());
    });
    if (items_.empty()) {
      return false;
    }
    if (!is_awaited() || outwaits_tellers(lock)) {
      return true;
    }
  }
}

bool OperationQueue::outwaits_tellers(std::unique_lock<std::mutex>& lock) {
  const int64_t next = items_.front()->seq;
  watched_ = true;
  changed_.wait_for(lock, kPatience, [this] { return can_take() && !is_awaited(); });
  watched_ = false;
  if (!can_take()) {
    return false;
  }
  if (items_.front()->seq == next) {
    for (Teller* teller : tellers_) {
      teller->is_late = true;
    }
  }
  return !is_awaited();
}

void OperationQueue::loop() {
  pthread_setname_np(pthread_self(), "argosy-comm");
  std::unique_lock lock(mutex_);
  while (await_turn(lock)) {
    Item item = std::move(items_.front());
    items_.pop_front();
    busy_ = true;
    --idle_;
    if (stopped_) {
      changed_.notify_all();  // this may have been the last one
    }
    perform(lock, std::move(item), true);
    ++idle_;
  }
}

bool OperationQueue::drain(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return wait_until(rested_, lock, deadline, [this] { return at_rest(); });
}

void OperationQueue::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  while (!threads_.empty()) {  // one of them may start another for what is queued
    std::vector<std::thread> threads = std::exchange(threads_, {});
    lock.unlock();
    for (std::thread& thread : threads) {
      thread.join();
    }
    lock.lock();
  }
  rested_.wait(lock, [this] { return at_rest(); });  // a caller may still be inside run()
}

void OperationQueue::abandon() {
  for (std::thread& thread : threads_) {
    thread.detach();
  }
  threads_.clear();
  stopped_ = true;
}

int64_t OperationQueue::pending() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(items_.size()) + (busy_ ? 1 : 0) + ending_;
}

}  // namespace argosy::comm
