#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "argosy/base/deadline.h"
#include "argosy/comm/operation.h"
#include "argosy/transport/transport.h"

namespace argosy::comm {

/// A group's operations on the memory of one device, in their order: beside its OperationQueue,
/// which has those on the host's memory.
///
/// An operation is queued on the device in the caller's thread, so nothing waits but the device.
/// What the transport hears of it later it tells the listener. Thread-safe.
class DeviceLine final {
 public:
  /// Runs when an operation has begun on the device, and when it ended, in a thread of the
  /// transport's, or the end in the caller's if that came later. Must not throw.
  struct Listener {
    std::function<void(Operation&)> started{};
    std::function<void(Operation&, std::exception_ptr)> ended{};
  };

  DeviceLine(std::unique_ptr<transport::Transport> transport, Listener listener)
      : listener_(std::move(listener)), transport_(std::move(transport)) {}
  ~DeviceLine();
  DeviceLine(const DeviceLine&) = delete;
  DeviceLine& operator=(const DeviceLine&) = delete;
  DeviceLine(DeviceLine&&) = delete;
  DeviceLine& operator=(DeviceLine&&) = delete;

  [[nodiscard]] transport::Transport& transport() { return *transport_; }

  /// Numbers the operation, calls `numbered`, and queues it. Throws what its body throws; the
  /// listener then hears nothing.
  void queue(const std::shared_ptr<Operation>& operation,
             const std::function<void(Operation&)>& numbered);

  /// Throws the cause if what the device holds may be garbage; see Transport::check().
  void check() { transport_->check(); }

  /// Waits until the device has passed all that was queued. Returns false if the deadline passes
  /// first.
  [[nodiscard]] bool drain(const Deadline& deadline);
  /// Ends what is queued. Idempotent.
  void close();

 private:
  class Course;

  const Listener listener_;
  std::mutex order_;  // held while an operation is queued
  std::mutex mutex_;
  std::condition_variable passed_;
  int64_t queued_ = 0;
  int64_t next_seq_ = 0;                                   // under order_
  const std::unique_ptr<transport::Transport> transport_;  // the last: its thread uses all of this
};

}  // namespace argosy::comm
