#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

namespace argosy::comm {

class WorkState;

/// The timeout of a rank that waits while others compute, such as a spare. Who dies breaks the
/// group at once; who hangs breaks it by the deadlines of the others, if there are some that
/// compute.
inline constexpr std::chrono::hours kWhileOthersCompute{24 * 7};

/// A running operation. A handle: copies are the same operation.
///
/// An operation's timeout counts from the moment it starts, after the operations before it have
/// ended. The timeout of a transfer (send_async, recv_async) counts from the call. Each operation
/// has one, so wait() always returns. An operation may be seen as completed a moment before an
/// earlier one is. Thread-safe. Lifetime: keeps the operation's tensors alive
/// until it ends. Dropping a Work does not cancel it.
class Work final {
 public:
  Work() = default;  ///< completed, without an error
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}

  /// Blocks until the operation has ended, and rethrows the error that stopped it (CommError,
  /// TimeoutError) at every call. On a device it only waits until the operation is queued there:
  /// what this thread queues next in its current stream comes after it, and an error that comes
  /// later is thrown by the group's next operation. With `timeout`, it blocks until the end on a
  /// device too, and throws a TimeoutError if that passes first; the operation continues until its
  /// own timeout.
  void wait() const;
  void wait(std::chrono::milliseconds timeout) const;

  /// True when it has ended, with or without an error. Never blocks.
  [[nodiscard]] bool is_completed() const;
  [[nodiscard]] bool is_success() const;
  /// Returns the error that stopped it, or nullptr while it runs and after a success.
  [[nodiscard]] std::exception_ptr exception() const;

 private:
  std::shared_ptr<WorkState> state_;
};

}  // namespace argosy::comm
