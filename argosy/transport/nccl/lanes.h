#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/transport/device_queue.h"
#include "argosy/transport/lobby.h"
#include "argosy/transport/nccl/communicator.h"

// Internal to the room.
namespace argosy::transport::nccl {

/// A message on its way to a device's queue.
struct Message {
  void* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<DeviceMark> ready{};  ///< behind it, its memory may be used
  std::shared_ptr<DeviceMark> done{};   ///< behind it, it was; null until it is queued
};

/// The messages from one rank to another in their order, on one of the two ranks.
///
/// A thread connects the ranks and queues the first messages, for that takes both ranks, and a rank
/// that starts to send must not wait. Later ones are queued on the device at once. Thread-safe.
class Lane final {
 public:
  /// `from`, `to`: ranks of the group. `self`: one of them, this one. `timeout`: to connect.
  Lane(std::shared_ptr<const Library> library,
       std::unique_ptr<DeviceQueue> queue,
       const Lobby& lobby,
       int from,
       int to,
       int self,
       std::chrono::milliseconds timeout);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  Lane(Lane&&) = delete;
  Lane& operator=(Lane&&) = delete;

  /// The calling thread's stream is the one that the memory is ready in.
  [[nodiscard]] std::shared_ptr<Message> start(void* data, int64_t bytes);
  /// Returns the place behind the message. Blocks: until it is queued.
  [[nodiscard]] std::shared_ptr<DeviceMark> wait_until_queued(const Message& message,
                                                              const Deadline& deadline);
  /// Throws if the library has found that a message fails.
  void check() { communicator_.check(); }
  /// Whether a message is on its way: the device has not passed it.
  [[nodiscard]] bool is_busy();
  [[nodiscard]] bool close(const Deadline& deadline) { return communicator_.close(deadline); }
  [[nodiscard]] Communicator& communicator() { return communicator_; }
  /// Tells who waits that the communicator was aborted.
  void give_up() noexcept;

 private:
  void run();
  void queue(std::unique_lock<std::mutex>& lock, Message& message);

  const std::shared_ptr<const Library> library_;
  const std::unique_ptr<DeviceQueue> queue_;
  const Lobby lobby_;
  const int from_;
  const int to_;
  const bool sends_;
  const std::chrono::milliseconds timeout_;
  Communicator communicator_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Message>> waiting_;
  std::shared_ptr<DeviceMark> newest_;  // behind the message that was queued last
  bool connected_ = false;
  bool queueing_ = false;  // a thread uses the queue
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // the last: it uses all of the above
};

/// The lanes between one rank and the others, made when they are needed.
///
/// Each two ranks have one for each direction, with a queue and a communicator of its own: in a
/// common one, two ranks that both send first would wait for each other. That holds as far as the
/// device runs streams side by side, which none promises: a program should send and receive in one
/// order on all ranks, as it must over NCCL itself. Thread-safe.
class Lanes final {
 public:
  /// Lifetime: refers to `queues` and to what the lobby refers to.
  Lanes(std::shared_ptr<const Library> library,
        DeviceQueues& queues,
        const Lobby& lobby,
        int rank,
        std::chrono::milliseconds timeout)
      : library_(std::move(library)),
        queues_(queues),
        lobby_(lobby),
        rank_(rank),
        timeout_(timeout) {}

  /// The lane to `peer`, or from it. Errors: LinkBroken after abort().
  [[nodiscard]] std::shared_ptr<Lane> with(int peer, bool sends);
  /// Makes no more lanes, and returns all that there are: in one order on all ranks, because the
  /// end of each may wait for the other rank.
  [[nodiscard]] std::vector<std::shared_ptr<Lane>> stop();

 private:
  const std::shared_ptr<const Library> library_;
  DeviceQueues& queues_;
  const Lobby lobby_;
  const int rank_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  bool aborted_ = false;
  std::map<std::pair<int, int>, std::shared_ptr<Lane>> lanes_;  // by the sender and the receiver
};

}  // namespace argosy::transport::nccl
