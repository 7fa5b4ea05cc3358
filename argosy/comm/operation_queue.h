#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/comm/operation.h"

namespace argosy::comm {

/// Runs a group's operations one at a time, in the order of the calls.
///
/// Its thread starts with the first push(), and stop() joins it. A program that only calls blocking
/// operations never has that thread: run() works in the caller's thread if nothing is queued before
/// it, which also saves two context switches, about 10 us.
///
/// Who is told of an operation's end may queue others, and wait for them: another thread then runs
/// the next ones. As a rule the thread that tells of an end is back within microseconds, and waking
/// another would take longer: so that one is woken where the teller queues something, or where the
/// teller is not back in kPatience. Of threads that only wait longer there are kMostThreads at
/// most.
///
/// What is queued by who hears of one end comes behind all that is queued by who hears of an
/// earlier one, and waits for that one to return. Thread-safe.
class OperationQueue final {
 public:
  using Item = std::shared_ptr<Operation>;
  /// Must not throw.
  using Execute = std::function<void(Operation&)>;

  /// `execute` runs an operation, while no other runs. `end` then completes it and tells of its
  /// end, in the same thread.
  OperationQueue(Execute execute, Execute end)
      : execute_(std::move(execute)), end_(std::move(end)) {}
  ~OperationQueue() { stop(); }
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;
  OperationQueue(OperationQueue&&) = delete;
  OperationQueue& operator=(OperationQueue&&) = delete;

  /// `on_enqueued` is called without a lock when an operation has its seq and before it runs. Set
  /// it before the first push().
  void set_on_enqueued(Execute on_enqueued) { on_enqueued_ = std::move(on_enqueued); }

  /// Numbers the operation and leaves it to the queue's thread. Returns false after stop(), without
  /// accepting it.
  /// Errors: TimeoutError when it is called where an end is told, and who was told of an earlier
  /// one has not returned within the operation's timeout; std::system_error when no thread can be
  /// made.
  [[nodiscard]] bool push(const Item& item);
  /// Numbers the operation and returns when it has completed. Returns false after stop(), without
  /// accepting it. Errors: as push().
  [[nodiscard]] bool run(const Item& item);

  /// Waits until no operation is queued, runs, or tells of its end. Returns false if the deadline
  /// passes first.
  [[nodiscard]] bool drain(const Deadline& deadline);
  /// Refuses new operations, runs the queued ones and joins the threads. Idempotent. Do not call it
  /// from one of them.
  void stop();
  /// For a forked process, which has no threads to join. It must not be destroyed there.
  void abandon();

  /// Returns the number of operations that are queued, run, or tell of their end.
  [[nodiscard]] int64_t pending() const;

 private:
  static constexpr std::chrono::milliseconds kPatience{5};
  static constexpr size_t kMostThreads = 4;

  /// A thread that tells of an end.
  class Teller;
  void announce(const Item& item) const;
  /// Waits until the caller may queue the operation. Returns false after stop().
  [[nodiscard]] bool await_place(std::unique_lock<std::mutex>& lock, Operation& operation);
  void accept(const Item& item);
  void publish(const Item& item);
  void loop();
  /// Executes and ends what this thread has taken, busy_. Called and returns under the lock.
  /// `comes_back`: this thread then takes the next.
  void perform(std::unique_lock<std::mutex>& lock, Item item, bool comes_back);
  /// Waits for an operation to take. Returns false when there will be none.
  [[nodiscard]] bool await_turn(std::unique_lock<std::mutex>& lock);
  /// Waits for a teller to come back and take the next operation. Returns true if none does.
  [[nodiscard]] bool outwaits_tellers(std::unique_lock<std::mutex>& lock);
  /// Sees to it that a thread takes the next operation.
  void wake();
  void add_thread();
  [[nodiscard]] bool can_take() const {
    return !busy_ && !items_.empty() && items_.front()->announced;
  }
  /// A thread is likely to take the next operation in a moment.
  [[nodiscard]] bool is_awaited() const;
  [[nodiscard]] bool at_rest() const { return items_.empty() && !busy_ && ending_ == 0; }

  const Execute execute_;
  const Execute end_;
  Execute on_enqueued_{};
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // for the queue's threads
  std::condition_variable told_;     // for drain(), stop() and await_place()
  std::deque<Item> items_;
  int64_t next_seq_ = 0;
  bool busy_ = false;  // an operation is executed, in whichever thread
  int ending_ = 0;     // operations whose end is being told
  int idle_ = 0;       // threads that wait, or are about to
  int nested_ = 0;     // of items_, those that were queued where an end is told
  Teller* tellers_ = nullptr;
  bool watched_ = false;  // a thread waits for a teller to come back, but no longer than kPatience
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace argosy::comm
