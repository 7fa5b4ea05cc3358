#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/base/thread_pool.h"
#include "argosy/rpc/functions.h"
#include "argosy/rpc/message.h"
#include "argosy/rpc/shared_line.h"

#include "rpc.pb.h"

namespace argosy::rpc {

/// A call that came, whatever brought it. Internal to the room.
class ServedCall : public Answer, public std::enable_shared_from_this<ServedCall> {
 public:
  explicit ServedCall(const Deadline& deadline) : deadline_(deadline) {}

  // Answer.
  [[nodiscard]] const std::string& caller() const final { return request_.caller(); }
  [[nodiscard]] Deadline deadline() const final { return deadline_; }
  [[nodiscard]] bool cancelled() const final {
    return cancelled_.load(std::memory_order_acquire) || deadline_.expired();
  }
  [[nodiscard]] Draft allocate(size_t bytes) final;
  void send(Parcel value) final;
  void finish(Parcel result) final;
  void fail(const std::exception_ptr& error) final;

  [[nodiscard]] const std::string& function() const { return request_.function(); }
  /// Returns the function. Without one it refuses the call and returns nullptr.
  [[nodiscard]] const Functions::Served* find(const Functions& functions);
  /// Runs it, unless nobody waits any more.
  void run();

 protected:
  /// What goes back: a Reply and the memory beside it.
  struct Result {
    wire::Reply reply{};
    Leaving leaving;
  };

  /// Takes over what came. `line`: see Coming.
  void set_request(wire::Request request, std::shared_ptr<SharedLine> line);
  void set_memories(std::vector<Memory> memories) { arguments_.memories() = std::move(memories); }
  [[nodiscard]] const wire::Request& request() const { return request_; }
  [[nodiscard]] SharedLine* line() const { return line_.get(); }
  void set_cancelled() { cancelled_.store(true, std::memory_order_release); }
  /// What the caller has not claimed by then it will not claim.
  [[nodiscard]] Deadline expiry() const;

  /// Sends one value of a stream, as Answer::send().
  virtual void send_value(Result value) = 0;
  /// Sends the result, which ends the call.
  virtual void end_with(Result result) = 0;
  /// Ends it without one.
  virtual void give_up() = 0;

 private:
  [[nodiscard]] Result result_of(Parcel parcel, const std::exception_ptr& error, SharedLine* line);

  const Deadline deadline_;
  wire::Request request_{};
  std::shared_ptr<SharedLine> line_{};
  std::shared_ptr<const Functions::Served> served_{};
  Parcel arguments_{};
  std::atomic<bool> cancelled_ = false;
};

/// Runs calls in threads. Thread-safe. Internal to the room.
class Dispatcher final {
 public:
  /// `most_queued`: calls that may wait for a thread.
  Dispatcher(Functions functions, int threads, size_t most_queued);
  /// Waits for functions that still run.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  Dispatcher(Dispatcher&&) = delete;
  Dispatcher& operator=(Dispatcher&&) = delete;

  /// Returns false when the call needs no thread any more: it is refused, or was quick.
  [[nodiscard]] bool admit(const std::shared_ptr<ServedCall>& call);
  /// Runs it in a thread of the pool, or refuses it.
  void queue(const std::shared_ptr<ServedCall>& call);

  /// One of the functions that may run at once.
  class Slot final {
   public:
    explicit Slot(Dispatcher& owner) : owner_(&owner) {}
    ~Slot();
    Slot(Slot&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    Slot& operator=(Slot&&) = delete;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    Dispatcher* owner_;
  };
  /// Returns nullopt when as many functions run as may.
  [[nodiscard]] std::optional<Slot> try_slot();

 private:
  [[nodiscard]] Slot await_slot();

  const Functions functions_;
  const size_t most_queued_;
  std::atomic<size_t> queued_ = 0;
  std::mutex mutex_;
  std::condition_variable freed_;
  int free_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace argosy::rpc
