#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "argosy/comm/device_line.h"
#include "argosy/comm/family.h"
#include "argosy/comm/operation.h"
#include "argosy/comm/operation_queue.h"
#include "argosy/comm/waiter_pool.h"
#include "argosy/comm/work.h"
#include "argosy/rendezvous/store.h"
#include "argosy/transport/rank_names.h"
#include "argosy/transport/transport.h"

namespace argosy::comm {

struct Reporter;

struct GroupStateOptions {
  std::string name{};
  std::chrono::milliseconds timeout{0};
  bool checked = false;
  std::vector<int> world_ranks{};  ///< world ranks of the members, in the order of their ranks here
  /// True: the last member that closes the group clears its part of the store. A world's part stays
  /// as long as the store.
  bool clears_store = false;
  /// Released when the group closes, after the transport and before the store: the job's presence.
  std::shared_ptr<void> keep{};
};

/// What a Group refers to: the transport, the store, and the queue that keeps the operations in
/// order. This room and the backends use it; users use Group.
///
/// Thread-safe. Lifetime: the last Group that refers to it closes it. Running operations then get
/// up to kGrace, or no time while an exception unwinds the stack.
class GroupState final {
 public:
  using Body = Operation::Body;
  using StartTransfer = std::function<std::unique_ptr<transport::Transfer>(transport::Transport&)>;

  /// How long a group that was not destroyed waits for operations that nobody waited for.
  static constexpr std::chrono::milliseconds kGrace = std::chrono::seconds(5);

  /// `transport` nullptr: this process is not a member.
  GroupState(std::unique_ptr<transport::Transport> transport,
             std::shared_ptr<rendezvous::Store> store,
             std::shared_ptr<Family> family,
             GroupStateOptions options);
  ~GroupState();
  GroupState(const GroupState&) = delete;
  GroupState& operator=(const GroupState&) = delete;
  GroupState(GroupState&&) = delete;
  GroupState& operator=(GroupState&&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(options_.world_ranks.size()); }
  [[nodiscard]] const GroupStateOptions& options() const { return options_; }
  [[nodiscard]] Family& family() const { return *family_; }
  [[nodiscard]] const std::shared_ptr<Family>& shared_family() const { return family_; }
  /// nullptr after close().
  [[nodiscard]] std::shared_ptr<rendezvous::Store> store() const;
  /// Returns the number of the next group made from this one. All members count alike.
  [[nodiscard]] int64_t next_child() { return next_child_.fetch_add(1); }
  /// The same among those that only their members make, which `members` says.
  [[nodiscard]] int64_t next_child_of(const std::string& members);

  /// Throws a UsageError if `op` may not be called now: the group is destroyed, or this process is
  /// not a member, or was forked from one.
  void check_usable(std::string_view op) const;
  /// Throws what an earlier operation failed by, if one did or is about to.
  void check_whole();

  /// Queues a collective and returns at once. `then` runs in the thread that ran it, and may call
  /// others and wait for them: see OperationQueue. The timeout (zero: the group's) counts from the
  /// moment the operation starts; operations before it have timeouts of their own.
  [[nodiscard]] Work submit(OperationInfo info,
                            std::chrono::milliseconds timeout,
                            Body body,
                            Operation::Then then = {});
  /// The same, but waits. Runs in this thread if nothing is queued before it.
  void run(OperationInfo info,
           std::chrono::milliseconds timeout,
           Body body,
           Operation::Then then = {});

  /// The operations on one device, `name`d "cuda:0". Made when they are first asked for, together
  /// with the other members. nullptr: what the device has goes through the host's memory.
  /// `queues`: makes those of the device. If that fails, the group is broken.
  [[nodiscard]] std::shared_ptr<DeviceLine> line_of(
      const std::string& name,
      const std::function<std::shared_ptr<transport::DeviceQueues>()>& queues);
  /// Queues a collective on a device, in this thread, and returns. Nothing waits but the device.
  [[nodiscard]] Work submit_on(DeviceLine& line,
                               OperationInfo info,
                               std::chrono::milliseconds timeout,
                               Body body);

  /// Starts a transfer now and returns. `finish` runs when it has ended, before the Work completes.
  /// The timeout counts from now.
  /// `line`: of the device that the memory is on; nullptr: the host's.
  [[nodiscard]] Work submit_transfer(OperationInfo info,
                                     std::chrono::milliseconds timeout,
                                     const StartTransfer& start,
                                     std::function<void()> finish,
                                     DeviceLine* line = nullptr,
                                     Operation::Then then = {});
  void run_transfer(OperationInfo info,
                    std::chrono::milliseconds timeout,
                    const StartTransfer& start,
                    const std::function<void()>& finish);

  /// Refuses new operations, waits for running ones until the deadline, closes the transport, joins
  /// the threads, and releases transport and store. Idempotent. Called while another thread closes,
  /// it returns when that is done; of both deadlines the sooner one counts.
  void close(const Deadline& deadline);
  /// True inside of one of the group's operations, or of what is told of its end: who is there
  /// cannot close the group, for that waits for him.
  [[nodiscard]] bool runs_here() const;

 private:
  std::shared_ptr<Operation> make(OperationInfo info, std::chrono::milliseconds timeout, Body body);
  std::shared_ptr<Operation> start(OperationInfo info,
                                   std::chrono::milliseconds timeout,
                                   const StartTransfer& start,
                                   std::function<void()> finish,
                                   DeviceLine* line);
  void execute(Operation& operation);
  void note_end(Operation& operation, const std::exception_ptr& error);
  /// Completes the operation, and runs what waits for that.
  void conclude(Operation& operation);
  [[nodiscard]] std::shared_ptr<DeviceLine> make_line(
      int number, std::shared_ptr<transport::DeviceQueues> queues);
  [[nodiscard]] std::vector<std::shared_ptr<DeviceLine>> lines();
  template <typename Part>
  [[nodiscard]] bool drain(Part& part);
  [[nodiscard]] bool drain_lines();
  [[nodiscard]] Deadline closes_by();
  void announce(Operation& operation) const;
  void begin(Operation& operation) const;
  [[nodiscard]] Reporter reporter(const Operation& operation) const;
  /// Why `operation` cannot run: an earlier one failed. nullptr: none did.
  [[nodiscard]] std::exception_ptr what_broke(const Operation& operation);
  [[nodiscard]] std::exception_ptr perform(Operation& operation);
  [[nodiscard]] std::exception_ptr explain(const Operation& operation,
                                           const std::exception_ptr& error);
  void remember_failure(const std::exception_ptr& error);
  void say_why_it_leaves() const;
  void clear_store(const Deadline& deadline) const;
  void forsake();
  [[noreturn]] void throw_destroyed(std::string_view op) const;

  const int rank_;
  std::unique_ptr<transport::Transport> transport_;  // until close() has joined who uses it
  mutable std::mutex store_mutex_;
  std::shared_ptr<rendezvous::Store> store_;
  const std::shared_ptr<Family> family_;
  GroupStateOptions options_;
  const transport::RankNames names_;
  const pid_t owner_ = getpid();

  std::atomic<int64_t> last_completed_{-1};
  std::atomic<int64_t> next_child_{0};
  std::mutex children_mutex_;
  std::map<std::string, int64_t> next_child_of_;
  std::atomic<int64_t> next_transfer_{0};
  std::atomic<int64_t> last_completed_on_device_{-1};
  std::mutex start_mutex_;  // transfers are started one after another

  std::atomic<bool> broken_{false};
  std::mutex cause_mutex_;
  std::string cause_;  // what stopped the first operation that failed
  std::vector<int> cause_peers_;

  std::mutex close_mutex_;  // held while it closes
  std::mutex closes_by_mutex_;
  std::optional<Deadline> closes_by_;  // the soonest of those who close
  std::atomic<bool> closed_{false};
  std::unique_ptr<OperationQueue> queue_;  // this and the next: nullptr in a forked child
  std::unique_ptr<WaiterPool> waiters_;

  /// Where a device's line stands. One thread makes it, and others that want it wait.
  struct LinePlace {
    const int number;  ///< in the order in which they were asked for
    std::mutex making{};
    bool made = false;                   ///< this and the next under lines_mutex_
    std::shared_ptr<DeviceLine> line{};  ///< nullptr: see line_of()
  };
  std::mutex lines_mutex_;  // never held while a line is made or ended, which takes the other ranks
  std::map<std::string, std::shared_ptr<LinePlace>> lines_;  // by device
};

}  // namespace argosy::comm
