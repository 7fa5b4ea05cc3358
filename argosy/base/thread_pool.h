#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace argosy {

/// A fixed number of named threads that run tasks in the order of their arrival.
///
///     ThreadPool pool(4, "decode");
///     std::future<Image> image = pool.submit([&] { return decode(bytes); });
///     image.get();  // rethrows what the task threw
///
/// Thread-safe: any thread may call submit(), also from within a task.
/// Lifetime: the destructor runs the tasks that already wait, then joins the threads.
class ThreadPool final {
 public:
  ThreadPool(size_t threads, const std::string& name);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ThreadPool(ThreadPool&&) = delete;
  ThreadPool& operator=(ThreadPool&&) = delete;

  [[nodiscard]] size_t size() const { return threads_.size(); }

  template <typename F>
  std::future<std::invoke_result_t<F>> submit(F task) {
    // shared_ptr because std::function must be copyable and packaged_task is not.
    auto packaged =
        std::make_shared<std::packaged_task<std::invoke_result_t<F>()>>(std::move(task));
    std::future<std::invoke_result_t<F>> result = packaged->get_future();
    enqueue([packaged] { (*packaged)(); });
    return result;
  }
  /// Calls task(i) for each i below `count`, in these threads and the caller's, and returns when
  /// all have ended. It needs no thread of the pool: the caller does alone what they have no time
  /// for. Errors: the first that a task threw; no further task begins then.
  void for_each(size_t count, const std::function<void(size_t)>& task);

 private:
  void enqueue(std::function<void()> task);
  void run();
  void close();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

/// Names the calling thread for debuggers, `top -H` and traces. The name is cut to 15 characters.
void set_thread_name(const std::string& name);

}  // namespace argosy
