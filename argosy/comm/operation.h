#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "argosy/base/deadline.h"
#include "argosy/transport/types.h"

namespace argosy::transport {
class DeviceMark;
class Transport;
}  // namespace argosy::transport

namespace argosy::comm {

/// "comm.all_reduce": where errors of an operation come from.
inline std::string place(std::string_view op) {
  return "comm." + std::string(op);
}

/// Where an asynchronous operation stands: what a Work refers to.
///
/// Thread-safe. It completes exactly once.
class WorkState {
 public:
  WorkState() = default;
  virtual ~WorkState() = default;
  WorkState(const WorkState&) = delete;
  WorkState& operator=(const WorkState&) = delete;
  WorkState(WorkState&&) = delete;
  WorkState& operator=(WorkState&&) = delete;

  /// Ends the operation, with what stopped it or nullptr, and wakes who waits.
  void complete(std::exception_ptr error);

  [[nodiscard]] virtual bool is_completed() const { return has_ended(); }
  /// nullptr while it runs or when all went well.
  [[nodiscard]] std::exception_ptr error() const;

  /// Blocks: until it has ended, or, on a device, until what the calling thread queues comes after
  /// it.
  virtual void wait() const;
  /// Whether it ended before the deadline.
  [[nodiscard]] bool wait_until(const Deadline& deadline) const;
  /// "all_reduce in group \"world\", seq 17": for messages.
  [[nodiscard]] virtual std::string describe() const { return "operation"; }

 protected:
  [[nodiscard]] bool has_ended() const { return completed_.load(std::memory_order_acquire); }

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;

 private:
  std::atomic<bool> completed_{false};
  std::exception_ptr error_;  // written once, before completed_
};

/// What an operation is: for messages, hooks and the checked mode.
struct OperationInfo {
  std::string_view op{};     ///< "all_reduce"; a literal
  std::string_view dtype{};  ///< "f32"; a literal; empty where there is none
  int64_t elements = 0;
  int64_t bytes = 0;
  int peer = -1;     ///< the other rank, of a transfer
  int64_t tag = -1;  ///< likewise
  transport::TrainingPlace place{};
  bool exact = false;       ///< sums must have the bits of all transports
  std::string signature{};  ///< what the checked mode compares; filled only when it is on

  /// Of a transfer, which runs beside the collectives and may come from any rank.
  [[nodiscard]] bool is_message() const { return peer >= 0 || tag >= 0; }
};

/// One operation on its way through a group's queue.
class Operation final : public WorkState {
 public:
  using Clock = std::chrono::steady_clock;
  /// Does the work, within the deadline. Runs once; destroyed (with the tensors it holds) before
  /// the operation completes.
  using Body = std::function<void(transport::Transport&, const Deadline&)>;
  /// Hears what stopped it, or nullptr, before wait() returns. Must not throw.
  using Then = std::function<void(const Operation&, const std::exception_ptr&)>;

  void wait() const override;
  [[nodiscard]] bool is_completed() const override;
  [[nodiscard]] std::string describe() const override;
  /// Says where on the device its results are there. Once, where on_device is set.
  void set_end_on_device(std::shared_ptr<transport::DeviceMark> end);

  OperationInfo info{};
  Body body{};
  Then then{};
  std::chrono::milliseconds timeout{0};
  std::string_view group{};  ///< the name, which lives in the group's state; not after it ended
  int64_t seq = -1;          ///< place in the group's order, from 0; transfers have their own count
  int64_t cause = -1;        ///< seq of the operation whose hearer has called this one; -1: none
  bool announced = false;    ///< on_enqueued was called; the queue's
  uint64_t id = 0;           ///< counts all operations of this process's groups
  bool on_device = false;    ///< its body only queues it there
  std::exception_ptr stopped_by{};  ///< until it completes, from then on see error()
  int source = -1;                  ///< the rank that sent what a transfer received
  Clock::time_point enqueued{};
  Clock::time_point started{};

 private:
  [[nodiscard]] std::shared_ptr<transport::DeviceMark> end_on_device() const;

  std::shared_ptr<transport::DeviceMark> end_on_device_;  // under mutex_
};

}  // namespace argosy::comm
