#include "tests/support/late_queue.h"

#include <algorithm>
#include <utility>

namespace argosy::test {

LateQueue::LateQueue(uint64_t seed) : draw_(seed), thread_([this] { serve(); }) {}

LateQueue::~LateQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    wanted_ = newest_;
  }
  changed_.notify_all();
  thread_.join();
}

LateQueue::Ticket LateQueue::submit(std::function<void()> work) {
  constexpr uint64_t kRun = 16;  // of works that are late, or are not
  constexpr uint64_t kPunctual = 4;
  const std::lock_guard lock(mutex_);
  if (newest_ % kRun == 0) {
    late_ = draw_() % kPunctual != 0;
  }
  const auto now = std::chrono::steady_clock::now();
  queue_.push_back({std::move(work), late_ ? now + kPatience : now});
  changed_.notify_all();
  return ++newest_;
}

LateQueue::Ticket LateQueue::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

bool LateQueue::is_done(Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  return done_ >= ticket;
}

void LateQueue::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  wanted_ = std::max(wanted_, ticket);
  changed_.notify_all();
  ended_.wait(lock, [&] { return done_ >= ticket; });
}

std::exception_ptr LateQueue::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, nullptr);
}

void LateQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    changed_.wait_until(lock, queue_.front().latest, [&] { return wanted_ > done_; });
    const std::function<void()> run = std::move(queue_.front().run);
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      run();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error_ != nullptr ? error_ : error;
    ++done_;
    ended_.notify_all();
  }
}

}  // namespace argosy::test
