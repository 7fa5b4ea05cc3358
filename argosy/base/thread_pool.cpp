#include "argosy/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "argosy/base/check.h"

namespace argosy {
namespace {

/// Tasks that several threads share. Who comes when they are over does nothing.
class Round final {
 public:
  Round(size_t count, const std::function<void(size_t)>& task) : count_(count), task_(task) {}

  void help() {
    {
      const std::lock_guard lock(mutex_);
      if (over_) {
        return;
      }
      ++working_;
    }
    work();
    const std::lock_guard lock(mutex_);
    --working_;
    changed_.notify_all();
  }
  /// Returns when all tasks have ended. Errors: what one threw.
  void finish() {
    work();
    std::unique_lock lock(mutex_);
    over_ = true;
    changed_.wait(lock, [&] { return working_ == 0; });
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  void work() {
    for (size_t i = next_++; i < count_; i = next_++) {
      try {
        task_(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = failure_ ? failure_ : std::current_exception();
        next_ = count_;
      }
    }
  }

  const size_t count_;
  const std::function<void(size_t)>& task_;  ///< the caller's, which waits for who works
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t working_ = 0;
  bool over_ = false;
  std::exception_ptr failure_{};
};

}  // namespace

void set_thread_name(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

ThreadPool::ThreadPool(size_t threads, const std::string& name) {
  ARGOSY_CHECK(threads > 0, "base.ThreadPool", "expected at least 1 thread, got 0");
  threads_.reserve(threads);
  try {
    for (size_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this, label = fmt::format("{}/{}", name, i)] {
        set_thread_name(label);
        run();
      });
    }
  } catch (...) {  // the system has no more threads: end those that run, then say so
    close();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  close();
}

void ThreadPool::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::for_each(size_t count, const std::function<void(size_t)>& task) {
  const auto round = std::make_shared<Round>(count, task);
  for (size_t i = 1; i < std::min(count, size() + 1); ++i) {
    enqueue([round] { round->help(); });
  }
  round->finish();
}

void ThreadPool::enqueue(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void ThreadPool::run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closing_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

}  // namespace argosy
