#pragma once

#include <algorithm>
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
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/thread_pool.h"

namespace argosy::data {

struct PrefetchOptions {
  int threads = 0;              ///< 0: next() does the work itself
  int depth = 2;                ///< results that may be in progress or waiting, at least 1
  std::string name = "loader";  ///< name of the threads
  /// A wait longer than this is logged, and again after each such time, with the number of the
  /// missing result. So a stuck disk does not look like a hang without cause.
  std::chrono::milliseconds report_stall_after = std::chrono::seconds(30);
  /// The time after which next() gives up. 0: never.
  std::chrono::milliseconds timeout{0};
  /// Called once on each thread, with its number, before it makes anything.
  std::function<void(int thread)> thread_init{};
};

/// What a maker gets, and what it may report.
struct Making {
  int thread;  ///< from 0; -1: the thread that calls next()
  const std::atomic<bool>&
      stop;  ///< true: nobody needs the result any more, so return anything soon
  /// The sample in progress, for the report about a late result. -1: not known.
  std::atomic<int64_t>& sample;
};

/// Makes results on loader threads ahead of time, and returns them in order.
///
///     OrderedPrefetch<Image> images({.threads = 4, .depth = 8});
///     images.start(0, 100, [&](int64_t i, const Making& making) { return load(i); });
///     while (std::optional<Image> image = images.next()) ...   // 0, 1, … 99
///
/// The order is that of the numbers, whatever the number of threads and whichever is faster.
/// Results are begun in this order too. At most `depth` results exist that next() has not returned.
/// If make(i) throws, next() rethrows it instead of result i; later results can still be read.
///
/// Threads: the first start() starts them, and the destructor joins them. It waits for a late one,
/// because a thread cannot be ended from outside. start(), next(), cancel() and the destructor
/// belong to one thread. make runs on all threads at once, and must be safe for that.
template <typename T>
class OrderedPrefetch final {
 public:
  using Make = std::function<T(int64_t number, const Making& making)>;

  explicit OrderedPrefetch(PrefetchOptions options)
      : options_(std::move(options)), makers_(std::max(1, options_.threads)) {
    ARGOSY_CHECK(options_.threads >= 0 && options_.depth >= 1,
                 "data.OrderedPrefetch",
                 "expected threads >= 0 and depth >= 1, got {} and {}",
                 options_.threads,
                 options_.depth);
    slots_.resize(options_.depth);
  }
  ~OrderedPrefetch() {
    std::unique_lock lock(mutex_);
    stop();
    closing_ = true;
    work_.notify_all();
    wait_for_idle(lock, kForever);
    lock.unlock();
    for (Maker& maker : makers_) {
      if (maker.thread.joinable()) {
        maker.thread.join();
      }
    }
  }
  OrderedPrefetch(const OrderedPrefetch&) = delete;
  OrderedPrefetch& operator=(const OrderedPrefetch&) = delete;
  OrderedPrefetch(OrderedPrefetch&&) = delete;
  OrderedPrefetch& operator=(OrderedPrefetch&&) = delete;

  /// Begins with results first … end - 1. Drops the rest of an earlier start().
  /// Errors: UsageError with what thread_init threw on the first thread; DataError when a late
  /// thread of an earlier start() has not returned within `timeout`.
  void start(int64_t first, int64_t end, Make make) {
    std::vector<Slot> dropped(options_.depth);  // destroyed after the lock is released
    Make old;
    begin_threads();
    std::unique_lock lock(mutex_);
    stop();
    wait_for_idle(lock, options_.timeout);
    late_ = false;
    slots_.swap(dropped);
    old = std::exchange(make_, std::move(make));
    delivered_ = claimed_ = first;
    end_ = end;
    stop_ = false;
    lock.unlock();
    work_.notify_all();
  }

  /// Waits for the next result. nullopt: all were returned, or none was started.
  /// Errors: what make() threw; DataError with thread and sample after `timeout`.
  std::optional<T> next() {
    if (options_.threads == 0) {
      return delivered_ < end_ ? std::optional<T>(make_(delivered_++, making(-1))) : std::nullopt;
    }
    std::unique_lock lock(mutex_);
    if (delivered_ >= end_) {
      return std::nullopt;
    }
    Slot& slot = slots_[delivered_ % options_.depth];
    late_ = true;  // unless it comes
    wait_for(filled_, lock, options_.timeout, delivered_, [&] { return slot.ready; });
    late_ = false;
    Slot taken = std::exchange(slot, Slot{});
    ++delivered_;
    lock.unlock();
    work_.notify_one();
    if (taken.error != nullptr) {
      std::rethrow_exception(taken.error);
    }
    return std::move(taken.value);
  }

  /// Drops the rest. When it returns, no thread runs make any more, unless next() has given up on
  /// one. The next start() and the destructor wait for that one.
  /// Blocks: until the makes that run have returned (they see `stop`).
  void cancel() {
    std::vector<Slot> dropped(options_.depth);  // destroyed after the lock is released
    Make old;
    std::unique_lock lock(mutex_);
    stop();
    if (late_) {
      return;
    }
    wait_for_idle(lock, kForever);
    slots_.swap(dropped);
    std::swap(make_, old);
  }

 private:
  struct Slot {
    std::optional<T> value;
    std::exception_ptr error;
    bool ready = false;
  };

  struct Maker {
    std::thread thread;
    int64_t number = -1;               // number of the result that it makes
    std::atomic<int64_t> sample = -1;  // see Making
  };

  static constexpr int64_t kAny = -1;
  static constexpr std::chrono::milliseconds kForever{0};

  [[nodiscard]] Making making(int thread) {
    return {thread, stop_, makers_[std::max(0, thread)].sample};
  }

  void stop() {
    stop_ = true;
    delivered_ = end_ = claimed_;
  }

  void begin_threads() {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < options_.threads; ++i) {
      if (!makers_[i].thread.joinable()) {
        makers_[i].thread = std::thread([this, i] {
          set_thread_name(fmt::format("{}/{}", options_.name, i));
          if (initialise(i)) {
            run(i);
          }
        });
        initialising_ += options_.thread_init == nullptr ? 0 : 1;
      }
    }
    wait_for(idle_, lock, options_.timeout, kAny, [&] { return initialising_ == 0; });
    if (init_error_ != nullptr) {
      std::rethrow_exception(init_error_);
    }
  }

  /// Runs on thread i. False: the thread must not work.
  bool initialise(int i) {
    if (options_.thread_init == nullptr) {
      return true;
    }
    std::string error;
    try {
      options_.thread_init(i);
    } catch (const std::exception& e) {
      error = fmt::format("thread_init threw on thread {}: {}", i, e.what());
    } catch (...) {
      error = fmt::format("thread_init threw on thread {}", i);
    }
    const std::lock_guard lock(mutex_);
    --initialising_;
    if (!error.empty() && (init_error_ == nullptr || i < init_error_of_)) {
      init_error_ = std::make_exception_ptr(UsageError("data." + options_.name, error));
      init_error_of_ = i;
    }
    idle_.notify_one();
    return error.empty();
  }

  struct Late {
    std::string who;
    int64_t sample = -1;
  };

  /// Returns which thread delays result `number` (kAny: any result).
  Late find_late(int64_t number) const {
    for (size_t i = 0; i < makers_.size(); ++i) {
      const int64_t at = makers_[i].number;
      if (at >= 0 && (at == number || number == kAny)) {
        return {
            fmt::format("thread {} is inside the data set's get() or get_batch(), or collate", i),
            makers_[i].sample};
      }
    }
    return {initialising_ > 0 ? "thread_init has not returned" : "no thread has begun it", -1};
  }

  void wait_for_idle(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout) {
    wait_for(idle_, lock, timeout, kAny, [&] { return running_ + initialising_ == 0; });
  }

  /// Waits for result `number`, or for everything in progress (kAny), and reports a long wait.
  /// Errors: DataError when the timeout has passed.
  template <typename Ready>
  void wait_for(std::condition_variable& changed,
                std::unique_lock<std::mutex>& lock,
                std::chrono::milliseconds timeout,
                int64_t number,
                Ready ready) {
    if (ready()) {
      return;
    }
    const auto begin = Deadline::Clock::now();
    const Deadline end = timeout == kForever ? Deadline::never() : Deadline::after(timeout);
    const std::string what = number == kAny ? "threads to return" : fmt::format("batch {}", number);
    while (!wait_until(
        changed, lock, Deadline::after(options_.report_stall_after).sooner(end), ready)) {
      const std::chrono::duration<double> waited = Deadline::Clock::now() - begin;
      const Late late = find_late(number);
      if (end.expired()) {
        throw DataError(
            "data." + options_.name,
            fmt::format(
                "waited for {} for {:.1f} s, the timeout: {}. A slow disk, or a lock? Raise "
                "timeout, or look at that thread in a debugger",
                what,
                waited.count(),
                late.who),
            {.path = "", .index = late.sample});
      }
      lock.unlock();  // the log may block
      log::warn("[data.{}] still waiting for {} after {:.0f} s: {}{}. A slow disk, or a lock?",
                options_.name,
                what,
                waited.count(),
                late.who,
                late.sample < 0 ? "" : fmt::format(" (sample {})", late.sample));
      lock.lock();
    }
  }

  void run(int thread) {
    Maker& self = makers_[thread];
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [&] {
        return closing_ || (claimed_ < end_ && claimed_ < delivered_ + options_.depth);
      });
      if (closing_) {
        return;
      }
      const int64_t number = claimed_++;
      self.number = number;
      self.sample = -1;
      ++running_;
      lock.unlock();
      Slot made = make_slot(number, making(thread));  // make_ stays as it is while running_ > 0
      lock.lock();
      self.number = -1;
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

  Slot make_slot(int64_t number, const Making& making) {
    Slot slot;
    slot.ready = true;
    try {
      slot.value.emplace(make_(number, making));
    } catch (...) {
      slot.error = std::current_exception();
    }
    return slot;
  }

  const PrefetchOptions options_;
  std::mutex mutex_;
  std::condition_variable work_;    // something to claim, or closing
  std::condition_variable filled_;  // the slot that next() waits for
  std::condition_variable idle_;    // no make runs, or a thread is initialised
  Make make_;
  std::vector<Slot> slots_;  // result i lies in slot i % depth
  int64_t delivered_ = 0;    // results below it were given out
  int64_t claimed_ = 0;      // results below it were taken by a thread
  int64_t end_ = 0;
  int running_ = 0;
  int initialising_ = 0;  // threads that have not come out of thread_init
  int init_error_of_ = 0;
  std::exception_ptr init_error_;
  bool closing_ = false;
  bool late_ = false;  // next() has given up on a result
  std::atomic<bool> stop_{false};
  std::vector<Maker> makers_;  // at least one: with none, of the thread that calls next()
};

}  // namespace argosy::data
