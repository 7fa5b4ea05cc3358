#include "argosy/comm/waiter_pool.h"

#include <utility>

#include "argosy/base/thread_pool.h"

namespace argosy::comm {

bool WaiterPool::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      return false;
    }
    tasks_.push_back(std::move(task));
    if (idle_ < tasks_.size()) {
      threads_.emplace_back([this] { loop(); });
      ++idle_;  // it counts as idle until it takes a task
    }
  }
  changed_.notify_one();
  return true;
}

bool WaiterPool::run_here(const std::function<void()>& task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      return false;
    }
    ++here_;
  }
  struct Leave {
    explicit Leave(WaiterPool& waiters) : pool(waiters) {}
    Leave(const Leave&) = delete;
    Leave& operator=(const Leave&) = delete;
    ~Leave() {
      const std::lock_guard lock(pool.mutex_);
      --pool.here_;
      pool.idle_changed_.notify_all();
    }
    WaiterPool& pool;
  } leave(*this);
  task();
  return true;
}

void WaiterPool::loop() {
  set_thread_name("argosy-transfer");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    --idle_;
    lock.unlock();
    task();
    task = nullptr;  // drops what it holds, tensors among it, before it counts as idle
    lock.lock();
    ++idle_;
    idle_changed_.notify_all();
  }
}

bool WaiterPool::drain(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return wait_until(idle_changed_, lock, deadline, [this] {
    return tasks_.empty() && idle_ == threads_.size() && here_ == 0;
  });
}

void WaiterPool::stop() {
  {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    idle_changed_.wait(lock, [this] { return here_ == 0; });
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
  idle_ = 0;
}

void WaiterPool::abandon() {
  for (std::thread& thread : threads_) {
    thread.detach();
  }
  threads_.clear();
  stopped_ = true;
}

}  // namespace argosy::comm
