#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "argosy/transport/nccl/communicator.h"
#include "argosy/transport/nccl/exact.h"
#include "argosy/transport/nccl/lanes.h"
#include "argosy/transport/nccl/nccl.h"
#include "argosy/transport/watched_transport.h"

// Internal to the room.
namespace argosy::transport::nccl {

/// What make_nccl() returns.
///
/// Collectives are queued in the calling thread. Another thread follows them in their order, first
/// through the calls that queue them, which may wait for other ranks, and then on the device. It
/// tells the watch and the listeners when one begins and ends. When one fails, or takes too long,
/// it aborts the communicators, so that nothing waits on the device any more, and no call.
class NcclTransport final : public WatchedTransport {
 public:
  NcclTransport(std::shared_ptr<rendezvous::Store> store,
                int rank,
                int size,
                const NcclOptions& options);
  ~NcclTransport() override;
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  [[nodiscard]] std::string name() const override { return "nccl"; }
  /// Collective: connects the ranks.
  void connect_all(const NcclOptions& options);

  [[nodiscard]] DeviceQueue* queue() override { return queue_.get(); }
  void set_exact(bool exact) override { exact_ = exact; }
  void listen(std::shared_ptr<CollectiveListener> listener) override {
    listener_ = std::move(listener);
  }
  void check() override;

 protected:
  void do_all_reduce(const TreeBuffers& buffers,
                     int64_t count,
                     DType dtype,
                     ReduceOp op,
                     const Deadline& deadline) override;
  void do_reduce(const TreeBuffers& buffers,
                 int64_t count,
                 DType dtype,
                 ReduceOp op,
                 int root,
                 const Deadline& deadline) override;
  void do_reduce_scatter(const TreeBuffers& buffers,
                         int64_t count,
                         DType dtype,
                         ReduceOp op,
                         const Deadline& deadline) override;
  void do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) override;
  void do_all_gather(const void* input,
                     void* output,
                     const Parts& parts,
                     const Deadline& deadline) override;
  void do_gather(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) override;
  void do_scatter(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) override;
  void do_all_to_all(const void* input,
                     const Parts& sends,
                     void* output,
                     const Parts& receives,
                     const Deadline& deadline) override;
  void do_barrier(const Deadline& deadline) override;
  std::unique_ptr<Link> do_send(const void* data, size_t bytes, int peer, uint32_t tag) override;
  std::unique_ptr<Link> do_recv(void* data, size_t bytes, int peer, uint32_t tag) override;
  void do_copy(void* to, const void* from, int64_t bytes) override;
  void do_reduce_alone(const TreeBuffers& buffers,
                       int64_t count,
                       DType dtype,
                       ReduceOp op) override;
  [[nodiscard]] bool sums_exactly() const override { return exact_ || !is_native_wanted(); }
  void issue(const Call& call, Timeout timeout, const std::function<void()>& body) override;
  void interrupt() override;
  void disconnect() override;

 private:
  enum class Stage : uint8_t {
    kCalled,   ///< a thread calls what queues it
    kQueued,   ///< it is queued, or as much of it as there will be
    kRefused,  ///< the call failed, and its caller knows
  };
  /// A collective that the device has not passed yet.
  struct Queued {
    Call call{};
    Timeout timeout{0};
    Stage stage = Stage::kCalled;
    bool begun = false;  ///< the watch knows of it; of the thread that follows
    std::shared_ptr<CollectiveListener> listener{};
    std::shared_ptr<DeviceMark> begin{};
    std::shared_ptr<DeviceMark> end{};
  };
  class LaneLink;

  template <typename ToSend, typename ToReceive>
  void exchange(ToSend to_send, ToReceive to_receive, const Deadline& deadline);
  [[nodiscard]] std::shared_ptr<const Library> agree_on_library(const NcclOptions& options,
                                                                const Deadline& deadline);
  void check_devices(const Deadline& deadline);
  [[nodiscard]] ExactReduction exact(const Deadline& deadline);
  [[nodiscard]] bool is_native_wanted() const;
  [[nodiscard]] bool is_native(const LeafDeal& deal, DType dtype, ReduceOp op) const;
  std::unique_ptr<Link> start(void* data, size_t bytes, int peer, uint32_t tag, bool sends);
  void follow_device();
  void follow_call(std::unique_lock<std::mutex>& lock, Queued& queued);
  void begin(Queued& queued);
  [[nodiscard]] std::exception_ptr follow(Queued& queued);
  void await(DeviceMark& place,
             const Deadline& deadline,
             const std::function<void()>& check,
             const std::function<std::optional<int>()>& who_left);
  [[nodiscard]] LinkTimeout waits_for_others() const;
  [[nodiscard]] std::optional<int> leaver_before(const Queued& queued);
  [[nodiscard]] std::shared_ptr<void> enter_if_possible() const noexcept;
  void end_in_peace();
  [[nodiscard]] static bool has_passed(const Queued& queued);
  void throw_if_interrupted() const;

  const std::shared_ptr<DeviceQueues> queues_;
  const std::function<NcclMode()> mode_;
  const std::chrono::milliseconds suspicion_;
  const std::unique_ptr<DeviceQueue> queue_;  ///< null in a rank that refuses
  std::shared_ptr<const Library> library_;    ///< null in a group of one
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Lanes> lanes_;
  std::shared_ptr<CollectiveListener> listener_;
  bool exact_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queued_;
  std::atomic<bool> interrupted_{false};
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace argosy::transport::nccl
