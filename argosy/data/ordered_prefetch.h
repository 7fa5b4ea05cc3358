#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/deadline.h"
#include "argosy/base/log.h"
#include "argosy/base/thread_pool.h"

namespace argosy::data {

struct PrefetchOptions {
  int workers = 0;              ///< threads; 0: next() does the work itself
  int depth = 2;                ///< results that may be in the making or waiting, at least 1
  std::string name = "loader";  ///< of the threads
  /// A wait longer than this is reported in the log (and again after each such time), with the
  /// number of the result that does not come: a stuck disk must not look like a hang without cause.
  std::chrono::milliseconds report_stall_after = std::chrono::seconds(30);
};

/// Makes things on worker threads, ahead of time, and hands them out in order.
///
///     OrderedPrefetch<Image> images({.workers = 4, .depth = 8});
///     images.start(0, 100, [&](int64_t i, const std::atomic<bool>& stop) { return load(i); });
///     while (std::optional<Image> image = images.next()) ...   // 0, 1, … 99
///
/// The order is that of the numbers, whatever the number of workers and whoever is faster. At most
/// `depth` results exist that next() has not given out. What make(i) throws, next() rethrows in the
/// place of result i; the results after it can still be had.
///
/// Threads: started by the first start(), kept until destruction, joined by the destructor.
/// start(), next(), cancel() and the destructor belong to one thread; make runs on all workers at
/// once and must be safe for that.
template <typename T>
class OrderedPrefetch final {
 public:
  /// `stop` turns true when the result is not wanted any more: return or throw anything, soon.
  using Make = std::function<T(int64_t number, const std::atomic<bool>& stop)>;

  explicit OrderedPrefetch(PrefetchOptions options) : options_(std::move(options)) {
    ARGOSY_CHECK(options_.workers >= 0 && options_.depth >= 1,
                 "data.OrderedPrefetch",
                 "expected workers >= 0 and depth >= 1, got {} and {}",
                 options_.workers,
                 options_.depth);
    slots_.resize(options_.depth);
  }
  ~OrderedPrefetch() {
    cancel();
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  OrderedPrefetch(const OrderedPrefetch&) = delete;
  OrderedPrefetch& operator=(const OrderedPrefetch&) = delete;
  OrderedPrefetch(OrderedPrefetch&&) = delete;
  OrderedPrefetch& operator=(OrderedPrefetch&&) = delete;

  /// Begins with results first … end - 1; what an earlier start() still had is dropped.
  void start(int64_t first, int64_t end, Make make) {
    cancel();
    while (threads_.size() < static_cast<size_t>(options_.workers)) {
      const size_t number = threads_.size();
      threads_.emplace_back([this, number] {
        set_thread_name(fmt::format("{}/{}", options_.name, number));
        run();
      });
    }
    {
      const std::lock_guard lock(mutex_);
      make_ = std::move(make);
      delivered_ = claimed_ = first;
      end_ = end;
      stop_ = false;
    }
    work_.notify_all();
  }

  /// Waits for the next result. nullopt: all were given out, or none was started.
  std::optional<T> next() {
    if (options_.workers == 0) {
      return delivered_ < end_ ? std::optional<T>(make_(delivered_++, stop_)) : std::nullopt;
    }
    std::unique_lock lock(mutex_);
    if (delivered_ >= end_) {
      return std::nullopt;
    }
    Slot& slot = slots_[delivered_ % options_.depth];
    wait_for(slot, lock);
    Slot taken = std::exchange(slot, Slot{});
    ++delivered_;
    lock.unlock();
    work_.notify_one();
    if (taken.error != nullptr) {
      std::rethrow_exception(taken.error);
    }
    return std::move(taken.value);
  }

  /// Drops what is left. When it returns, no worker runs make any more.
  /// Blocks: until the makes that run have returned (they see `stop`).
  void cancel() {
    std::vector<Slot> dropped(options_.depth);  // destroyed after the lock is released
    std::unique_lock lock(mutex_);
    stop_ = true;
    end_ = claimed_;
    idle_.wait(lock, [&] { return running_ == 0; });
    slots_.swap(dropped);
    delivered_ = end_;
  }

 private:
  struct Slot {
    std::optional<T> value;
    std::exception_ptr error;
    bool ready = false;
  };

  void wait_for(const Slot& slot, std::unique_lock<std::mutex>& lock) {
    const auto begin = Deadline::Clock::now();
    while (!wait_until(
        filled_, lock, Deadline::after(options_.report_stall_after), [&] { return slot.ready; })) {
      const int64_t number = delivered_;
      lock.unlock();  // the log may block
      log::warn(
          "[data.{}] still waiting for batch {} after {} s: a worker is inside the data set's "
          "get() or get_batch(). A slow disk, or a lock?",
          options_.name,
          number,
          std::chrono::duration_cast<std::chrono::seconds>(Deadline::Clock::now() - begin).count());
      lock.lock();
    }
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [&] {
        return closing_ || (claimed_ < end_ && claimed_ < delivered_ + options_.depth);
      });
      if (closing_) {
        return;
      }
      const int64_t number = claimed_++;
      ++running_;
      lock.unlock();
      Slot made = make_slot(number);  // make_ stays as it is while running_ > 0
      lock.lock();
      if (!stop_) {
        std::swap(slots_[number % options_.depth], made);
      }
      const bool wanted = number == delivered_;
      lock.unlock();
      made = Slot{};  // an unwanted result dies outside the lock, and before cancel() returns
      if (wanted) {
        filled_.notify_one();
      }
      lock.lock();
      if (--running_ == 0) {
        idle_.notify_one();
      }
    }
  }

  Slot make_slot(int64_t number) {
    Slot slot;
    slot.ready = true;
    try {
      slot.value.emplace(make_(number, stop_));
    } catch (...) {
      slot.error = std::current_exception();
    }
    return slot;
  }

  const PrefetchOptions options_;
  std::mutex mutex_;
  std::condition_variable work_;    // something to claim, or closing
  std::condition_variable filled_;  // the slot that next() waits for
  std::condition_variable idle_;    // no make runs
  Make make_;
  std::vector<Slot> slots_;  // result i lies in slot i % depth
  int64_t delivered_ = 0;    // results below it were given out
  int64_t claimed_ = 0;      // results below it were taken by a worker
  int64_t end_ = 0;
  int running_ = 0;
  bool closing_ = false;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace argosy::data
