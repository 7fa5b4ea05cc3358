#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "argosy/transport/reduce.h"
#include "argosy/transport/types.h"

namespace argosy::transport {

/// A place in the order of a DeviceQueue.
class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
  DeviceMark() = default;
  DeviceMark(const DeviceMark&) = delete;
  DeviceMark& operator=(const DeviceMark&) = delete;
  DeviceMark(DeviceMark&&) = delete;
  DeviceMark& operator=(DeviceMark&&) = delete;

  /// Whether the device has come here. Never blocks. Errors: what the device says after a fault.
  [[nodiscard]] virtual bool has_passed() = 0;
  /// What this thread queues from now on, in its current stream, comes after this place.
  virtual void hold_caller() = 0;
};

/// A queue of work on one device: a stream. What is called here is queued behind all that was
/// queued before it, and returns at once.
///
/// All addresses are of memory of the device. It must stay allocated until the device has passed
/// the work, or be memory that was recorded on this queue. Thread-safety: one thread at a time;
/// marks from any thread.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  DeviceQueue() = default;
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  DeviceQueue(DeviceQueue&&) = delete;
  DeviceQueue& operator=(DeviceQueue&&) = delete;

  /// The device's own handle of the stream: a cudaStream_t or hipStream_t.
  [[nodiscard]] virtual void* handle() const = 0;
  /// Makes the queue's device the current one of the calling thread, until what is returned goes.
  [[nodiscard]] virtual std::shared_ptr<void> enter() const = 0;
  [[nodiscard]] virtual std::shared_ptr<DeviceMark> mark() = 0;
  /// The place that the calling thread's current stream of this device has come to.
  [[nodiscard]] virtual std::shared_ptr<DeviceMark> mark_of_caller() const = 0;
  /// What follows here comes after `place`, which one of these queues or callers marked.
  virtual void follow(DeviceMark& place) = 0;

  /// Memory for work of this queue, with any content. Letting go of it is safe as soon as that work
  /// is queued.
  [[nodiscard]] virtual std::shared_ptr<void> allocate(int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  /// Loads what reduce() needs for such terms at its first time, which may wait for the whole
  /// device: to be called before anything is queued that waits for other ranks. Their data is not
  /// read, and may be null.
  virtual void prepare(const Terms& terms, DType dtype, ReduceOp op) = 0;
  /// As transport::reduce(), with the same bits.
  virtual void reduce(
      const Terms& terms, void* destination, int64_t count, DType dtype, ReduceOp op) = 0;
};

/// Makes queues of one device.
class DeviceQueues {
 public:
  virtual ~DeviceQueues() = default;
  DeviceQueues() = default;
  DeviceQueues(const DeviceQueues&) = delete;
  DeviceQueues& operator=(const DeviceQueues&) = delete;
  DeviceQueues(DeviceQueues&&) = delete;
  DeviceQueues& operator=(DeviceQueues&&) = delete;

  [[nodiscard]] virtual std::unique_ptr<DeviceQueue> make() = 0;
  /// The device's address on the bus of its host; empty: not known. Two ranks of a host with one
  /// address are on one device.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Whether the program asks for results that do not depend on how they are computed.
  [[nodiscard]] virtual bool wants_exact() const = 0;
};

/// Hears what becomes of a collective that a transport only queues. No function may throw, or call
/// the transport.
class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  CollectiveListener() = default;
  CollectiveListener(const CollectiveListener&) = delete;
  CollectiveListener& operator=(const CollectiveListener&) = delete;
  CollectiveListener(CollectiveListener&&) = delete;
  CollectiveListener& operator=(CollectiveListener&&) = delete;

  /// It is queued, and its end will be told. Called in the caller's thread, before the others,
  /// which are called in one of the transport's.
  virtual void accepted() {}
  /// The device has begun it: what was queued before it is done.
  virtual void started() = 0;
  /// It ended, by `error` if there is one. Called once, whether or not it started.
  virtual void ended(std::exception_ptr error) = 0;
};

}  // namespace argosy::transport
