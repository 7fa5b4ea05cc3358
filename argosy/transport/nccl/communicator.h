#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/lobby.h"
#include "argosy/transport/nccl/library.h"

// Internal to the room.
namespace argosy::transport::nccl {

/// One communicator of NCCL: some ranks, each on a device of its own.
///
/// Thread-safe. One thread at a time is inside of the library, from a call until its work is
/// queued: ncclCommGetAsyncError too changes a communicator, so check() is skipped meanwhile. Only
/// an abort waits for nobody for long, since a call may block for ever. Functions throw what
/// link_errors.h holds: OwnFault where this rank's call failed, LinkBroken where another rank or
/// the way to it did, LinkTimeout, and LinkBroken after abort().
class Communicator final {
 public:
  struct Place {
    std::string key{};  ///< where the ranks find each other in the lobby
    int rank = 0;       ///< here, not in the group
    int size = 1;
    std::vector<int> members{};  ///< the ranks in the group
    /// See DeviceQueue::enter(). Of the device that it is for.
    std::function<std::shared_ptr<void>()> enter{};
  };

  explicit Communicator(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  ~Communicator() { abort_together(library_, {this}); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Communicator(Communicator&&) = delete;
  Communicator& operator=(Communicator&&) = delete;

  /// Connects the ranks. Collective. The device is the calling thread's current one.
  void connect(const Lobby& lobby, const Place& place, const Deadline& deadline);

  /// Calls `queue` with the communicator, which calls functions of the library, and waits until
  /// they have queued their work. `call`: their name, for messages.
  void queue(const char* call, const Deadline& deadline, const std::function<Result(Comm)>& queue);
  /// The same for several calls that are one to the library.
  void queue_group(const char* call,
                   const Deadline& deadline,
                   const std::function<void(const std::function<void(Result)>&, Comm)>& queue);
  /// Throws if the library has found that work fails that was queued before.
  void check();

  /// Ends it in peace: what was queued still arrives. Returns false where it did not end, and is to
  /// be aborted. Does nothing after abort_together().
  [[nodiscard]] bool close(const Deadline& deadline);
  /// Ends them at once, and with them all work that waits on the device. Idempotent. All of a
  /// process at a time: the end of one may wait for the whole device, and so for work of another
  /// that nobody has ended yet.
  static void abort_together(const std::shared_ptr<const Library>& library,
                             const std::vector<Communicator*>& communicators) noexcept;

 private:
  void make(const char* call, const std::function<Result(Comm*)>& init);
  Result init_blocking(Comm* comm, const UniqueId& id, const Deadline& deadline);
  template <typename Function>
  Result call(Function function);
  [[nodiscard]] Comm take();
  void wait_until_queued(const char* call, const Deadline& deadline);
  [[nodiscard]] LinkTimeout waits_for_others() const;
  void throw_if_aborted();
  void throw_unless_fine(const char* call, Result result);

  const std::shared_ptr<const Library> library_;
  Place place_{};
  std::mutex use_;    // held while the library is used
  std::mutex mutex_;  // never held while it is called
  std::condition_variable idle_;
  int calls_ = 0;  // that are in the library now
  Comm comm_ = nullptr;
  bool aborted_ = false;
};

}  // namespace argosy::transport::nccl
