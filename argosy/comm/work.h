#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

namespace argosy::comm {

class WorkState;

/// An operation on its way. A value handle; copies refer to the same operation.
///
/// Limit: the operation's timeout counts from the moment it starts, when those issued before it
/// have ended; a transfer's (isend, irecv) from the call. As each has its own, wait() always
/// returns. Thread-safe. Lifetime: keeps the operation's tensors alive until it ends; dropping a
/// Work does not cancel it.
class Work final {
 public:
  Work() = default;  ///< already completed, without error
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}

  /// Blocks until the operation ended. Rethrows what stopped it (CommError, TimeoutError), every
  /// time it is called. With a timeout of its own, throws TimeoutError when that passes first; the
  /// operation itself goes on until the group's timeout.
  void wait() const;
  void wait(std::chrono::milliseconds timeout) const;

  /// True once it ended, well or not. Never blocks.
  [[nodiscard]] bool is_completed() const;
  [[nodiscard]] bool is_success() const;
  /// What stopped it; nullptr while it runs or when all went well.
  [[nodiscard]] std::exception_ptr exception() const;

 private:
  std::shared_ptr<WorkState> state_;
};

}  // namespace argosy::comm
