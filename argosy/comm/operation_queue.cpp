#include "argosy/comm/operation_queue.h"

#include <fmt/format.h>
#include <pthread.h>

#include <exception>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::comm {

class OperationQueue::Teller final {
 public:
  /// With the lock, as its end.
  Teller(OperationQueue& queue, const Operation& told, bool comes_back)
      : seq(told.seq),
        cause(told.cause),
        is_late(!comes_back),
        queue_(queue),
        outer_(innermost),
        next_(queue.tellers_) {
    innermost = this;
    queue_.tellers_ = this;
  }
  ~Teller() {
    innermost = outer_;
    Teller** link = &queue_.tellers_;
    while (*link != this) {
      link = &(*link)->next_;
    }
    *link = next_;
  }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;
  Teller(Teller&&) = delete;
  Teller& operator=(Teller&&) = delete;

  /// The innermost one of this thread that tells of an operation of `queue`, or nullptr.
  static Teller* here(const OperationQueue& queue) { return next_here(queue, innermost); }
  /// It queues something, for which it may wait.
  void may_wait() {
    for (Teller* teller = this; teller != nullptr; teller = next_here(queue_, teller->outer_)) {
      teller->is_late = true;
    }
  }
  template <typename Condition>
  static bool any(const OperationQueue& queue, Condition condition) {
    Teller* teller = queue.tellers_;
    while (teller != nullptr && !condition(*teller)) {
      teller = teller->next_;
    }
    return teller != nullptr;
  }

  const int64_t seq;
  const int64_t cause;
  bool is_late;  ///< it does not come back soon

 private:
  static Teller* next_here(const OperationQueue& queue, Teller* teller) {
    while (teller != nullptr && &teller->queue_ != &queue) {
      teller = teller->outer_;
    }
    return teller;
  }

  static thread_local Teller* innermost;
  OperationQueue& queue_;
  Teller* const outer_;
  Teller* next_;
};
thread_local OperationQueue::Teller* OperationQueue::Teller::innermost = nullptr;

bool OperationQueue::is_awaited() const {
  return Teller::any(*this, [](const Teller& teller) { return !teller.is_late; });
}

/// What is called by who hears of one end comes after all that is called by who hears of an earlier
/// one: so ranks agree in the order, whose hearers take how long.
bool OperationQueue::await_place(std::unique_lock<std::mutex>& lock, Operation& operation) {
  Teller* const caller = Teller::here(*this);
  if (caller != nullptr) {
    operation.cause = caller->seq;
    const Teller* earlier = nullptr;
    const auto has_place = [&] {
      return stopped_ || !Teller::any(*this, [&](const Teller& other) {
               earlier = &other;
               return other.cause == caller->cause && other.seq < caller->seq;
             });
    };
    if (!wait_until(told_, lock, Deadline::after(operation.timeout), has_place)) {
      throw TimeoutError(
          place(operation.info.op),
          fmt::format("it is called where the end of seq {} is told, and who was told of the end "
                      "of seq {} has not returned in {} ms. Calls have one order on all ranks: do "
                      "not let one callback wait for what a later one calls.",
                      caller->seq,
                      earlier->seq,
                      operation.timeout.count()));
    }
    caller->may_wait();
  }
  return !stopped_;
}

void OperationQueue::announce(const Item& item) const {
  if (on_enqueued_) {
    on_enqueued_(*item);
  }
}

bool OperationQueue::push(const Item& item) {
  {
    std::unique_lock lock(mutex_);
    if (!await_place(lock, *item)) {
      return false;
    }
    accept(item);
  }
  publish(item);
  return true;
}

bool OperationQueue::run(const Item& item) {
  std::unique_lock lock(mutex_);
  if (!await_place(lock, *item)) {
    return false;
  }
  if (busy_ || !items_.empty()) {
    accept(item);
    lock.unlock();
    publish(item);
    item->wait();
    return true;
  }
  item->seq = next_seq_++;
  busy_ = true;
  lock.unlock();
  announce(item);
  lock.lock();
  perform(lock, item, false);
  return true;
}

void OperationQueue::accept(const Item& item) {
  const bool has_caller_waiting = item->cause >= 0 && idle_ == 0;
  if (threads_.empty() || has_caller_waiting) {
    add_thread();  // may throw: before the item is accepted
  }
  items_.push_back(item);
  item->seq = next_seq_++;
  nested_ += item->cause >= 0 ? 1 : 0;
}

void OperationQueue::publish(const Item& item) {
  announce(item);
  const std::lock_guard lock(mutex_);
  item->announced = true;
  wake();
}

void OperationQueue::wake() {
  if (busy_ || items_.empty()) {
    return;  // who is busy calls this afterwards
  }
  if (watched_ && is_awaited()) {
    return;
  }
  if (idle_ == 0) {
    if (threads_.size() >= kMostThreads && nested_ == 0) {
      return;  // one that tells of an end takes it
    }
    try {
      add_thread();
    } catch (const std::exception&) {
      return;  // likewise
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
    const Teller teller(*this, *item, comes_back);
    wake();
    lock.unlock();
    end_(*item);
    item.reset();  // its last owner may be this thread: not under the lock
    lock.lock();
  }
  --ending_;
  told_.notify_all();
}

bool OperationQueue::await_turn(std::unique_lock<std::mutex>& lock) {
  if (can_take()) {
    return true;  // this thread has just come back, or begun
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
    (void)Teller::any(*this, [](Teller& teller) {
      teller.is_late = true;
      return false;
    });
  }
  return !is_awaited();
}

void OperationQueue::loop() {
  pthread_setname_np(pthread_self(), "argosy-comm");
  std::unique_lock lock(mutex_);
  while (await_turn(lock)) {
    Item item = std::move(items_.front());
    items_.pop_front();
    nested_ -= item->cause >= 0 ? 1 : 0;
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
  return wait_until(told_, lock, deadline, [this] { return at_rest(); });
}

void OperationQueue::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  told_.notify_all();
  while (!threads_.empty()) {  // one of them may start another for what is queued
    std::vector<std::thread> threads = std::exchange(threads_, {});
    lock.unlock();
    for (std::thread& thread : threads) {
      thread.join();
    }
    lock.lock();
  }
  told_.wait(lock, [this] { return at_rest(); });  // a caller may still be inside run()
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
