#include "argosy/data/ordered_prefetch.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/check.h"
#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/thread_pool.h"

namespace argosy::data::detail {
namespace {

constexpr int64_t kAny = -1;
constexpr std::chrono::milliseconds kForever{0};

}  // namespace

PrefetchQueue::PrefetchQueue(PrefetchOptions options)
    : options_(std::move(options)), makers_(std::max(1, options_.threads)) {
  ARGOSY_CHECK(options_.threads >= 0 && options_.depth >= 1,
               "data.OrderedPrefetch",
               "expected threads >= 0 and depth >= 1, got {} and {}",
               options_.threads,
               options_.depth);
  slots_.resize(options_.depth);
}
PrefetchQueue::~PrefetchQueue() {
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
void PrefetchQueue::start(int64_t first, int64_t end, Make make) {
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

PrefetchQueue::Result PrefetchQueue::next() {
  if (options_.threads == 0) {
    return delivered_ < end_ ? make_(delivered_++, making(-1)) : nullptr;
  }
  std::unique_lock lock(mutex_);
  if (delivered_ >= end_) {
    return nullptr;
  }
  Slot& slot = slots_[delivered_ % options_.depth];
  late_ = true;  // unless it comes
  wait_for(filled_, lock, options_.timeout, delivered_, [&] { return slot.ready; });
  late_ = false;
  return take(lock, slot);
}

PrefetchQueue::Result PrefetchQueue::next_if_ready() {
  std::unique_lock lock(mutex_);
  Slot& slot = slots_[delivered_ % options_.depth];
  const bool ready = delivered_ < end_ && slot.ready && slot.error == nullptr;
  return ready ? take(lock, slot) : nullptr;
}

/// Gives out the next result, which is ready.
PrefetchQueue::Result PrefetchQueue::take(Lock& lock, Slot& slot) {
  Slot taken = std::exchange(slot, Slot{});
  ++delivered_;
  lock.unlock();
  work_.notify_one();
  if (taken.error != nullptr) {
    std::rethrow_exception(taken.error);
  }
  return std::move(taken.value);
}

void PrefetchQueue::cancel() {
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

Making PrefetchQueue::making(int thread) {
  return {thread, stop_, makers_[std::max(0, thread)].sample};
}

void PrefetchQueue::stop() {
  stop_ = true;
  delivered_ = end_ = claimed_;
}

void PrefetchQueue::begin_threads() {
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

/// Runs on that thread. False: the thread must not work.
bool PrefetchQueue::initialise(int thread) {
  if (options_.thread_init == nullptr) {
    return true;
  }
  std::string error;
  try {
    options_.thread_init(thread);
  } catch (const std::exception& e) {
    error = fmt::format("thread_init threw on thread {}: {}", thread, e.what());
  } catch (...) {
    error = fmt::format("thread_init threw on thread {}", thread);
  }
  const std::lock_guard lock(mutex_);
  --initialising_;
  if (!error.empty() && (init_error_ == nullptr || thread < init_error_of_)) {
    init_error_ = std::make_exception_ptr(UsageError("data." + options_.name, error));
    init_error_of_ = thread;
  }
  idle_.notify_one();
  return error.empty();
}

/// Returns which thread delays result `number` (kAny: any result).
PrefetchQueue::Late PrefetchQueue::find_late(int64_t number) const {
  for (size_t i = 0; i < makers_.size(); ++i) {
    const int64_t at = makers_[i].number;
    if (at >= 0 && (at == number || number == kAny)) {
      return {fmt::format("thread {} is inside the data set's get() or get_batch(), or collate", i),
              makers_[i].sample};
    }
  }
  return {initialising_ > 0 ? "thread_init has not returned" : "no thread has begun it", -1};
}

void PrefetchQueue::wait_for_idle(Lock& lock, std::chrono::milliseconds timeout) {
  wait_for(idle_, lock, timeout, kAny, [&] { return running_ + initialising_ == 0; });
}

/// Waits for result `number`, or for everything in progress (kAny), and reports a long wait.
/// Errors: DataError when the timeout has passed.
void PrefetchQueue::wait_for(std::condition_variable& changed,
                             Lock& lock,
                             std::chrono::milliseconds timeout,
                             int64_t number,
                             const Ready& ready) {
  if (ready()) {
    return;
  }
  const auto begin = Deadline::Clock::now();
  const Deadline end = timeout == kForever ? Deadline::never() : Deadline::after(timeout);
  const std::string what = number == kAny ? "threads to return" : fmt::format("batch {}", number);
  while (
      !wait_until(changed, lock, Deadline::after(options_.report_stall_after).sooner(end), ready)) {
    const std::chrono::duration<double> waited = Deadline::Clock::now() - begin;
    const Late late = find_late(number);
    if (end.expired()) {
      throw DataError(
          "data." + options_.name,
          fmt::format("waited for {} for {:.1f} s, the timeout: {}. A slow disk, or a lock? Raise "
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

void PrefetchQueue::run(int thread) {
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

PrefetchQueue::Slot PrefetchQueue::make_slot(int64_t number, const Making& making) {
  Slot slot;
  slot.ready = true;
  try {
    slot.value = make_(number, making);
  } catch (...) {
    slot.error = std::current_exception();
  }
  return slot;
}

}  // namespace argosy::data::detail
