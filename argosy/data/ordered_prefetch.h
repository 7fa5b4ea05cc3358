#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

namespace detail {

/// The threads and places of an OrderedPrefetch, whatever its results are.
class PrefetchQueue final {
 public:
  using Result = std::shared_ptr<void>;
  using Make = std::function<Result(int64_t number, const Making& making)>;

  explicit PrefetchQueue(PrefetchOptions options);
  ~PrefetchQueue();
  PrefetchQueue(const PrefetchQueue&) = delete;
  PrefetchQueue& operator=(const PrefetchQueue&) = delete;
  PrefetchQueue(PrefetchQueue&&) = delete;
  PrefetchQueue& operator=(PrefetchQueue&&) = delete;

  void start(int64_t first, int64_t end, Make make);
  /// nullptr: all were returned, or none was started.
  [[nodiscard]] Result next();
  /// nullptr: it is not ready, or is an error.
  [[nodiscard]] Result next_if_ready();
  void cancel();

 private:
  struct Slot {
    Result value;
    std::exception_ptr error;
    bool ready = false;
  };
  struct Maker {
    std::thread thread;
    int64_t number = -1;               // number of the result that it makes
    std::atomic<int64_t> sample = -1;  // see Making
  };
  struct Late {
    std::string who;
    int64_t sample = -1;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Ready = std::function<bool()>;

  [[nodiscard]] Making making(int thread);
  void stop();
  void begin_threads();
  bool initialise(int thread);
  [[nodiscard]] Late find_late(int64_t number) const;
  void wait_for_idle(Lock& lock, std::chrono::milliseconds timeout);
  void wait_for(std::condition_variable& changed,
                Lock& lock,
                std::chrono::milliseconds timeout,
                int64_t number,
                const Ready& ready);
  void run(int thread);
  Result take(Lock& lock, Slot& slot);
  Slot make_slot(int64_t number, const Making& making);

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

}  // namespace detail

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

  explicit OrderedPrefetch(PrefetchOptions options) : queue_(std::move(options)) {}

  /// Begins with results first … end - 1. Drops the rest of an earlier start().
  /// Errors: UsageError with what thread_init threw on the first thread; DataError when a late
  /// thread of an earlier start() has not returned within `timeout`.
  void start(int64_t first, int64_t end, Make make) {
    queue_.start(first, end, [make = std::move(make)](int64_t number, const Making& making) {
      return std::make_shared<T>(make(number, making));
    });
  }

  /// Waits for the next result. nullopt: all were returned, or none was started.
  /// Errors: what make() threw; DataError with thread and sample after `timeout`.
  std::optional<T> next() { return value_of(queue_.next()); }

  /// Returns what next() would if that need not wait, nor throw. nullopt: next() has to be asked,
  /// always so with 0 threads.
  std::optional<T> next_if_ready() { return value_of(queue_.next_if_ready()); }

  /// Drops the rest. When it returns, no thread runs make any more, unless next() has given up on
  /// one. The next start() and the destructor wait for that one.
  /// Blocks: until the makes that run have returned (they see `stop`).
  void cancel() { queue_.cancel(); }

 private:
  static std::optional<T> value_of(const detail::PrefetchQueue::Result& made) {
    const auto result = std::static_pointer_cast<T>(made);
    return result == nullptr ? std::nullopt : std::optional<T>(std::move(*result));
  }

  detail::PrefetchQueue queue_;
};

}  // namespace argosy::data
