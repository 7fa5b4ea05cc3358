#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/transport/leaf_deal.h"
#include "argosy/transport/shared_block.h"
#include "argosy/transport/types.h"

namespace argosy::transport {

class CollectiveListener;
class DeviceMark;
class DeviceQueue;

/// Element count per rank for the uneven operations; size() entries.
using Counts = std::span<const int64_t>;
using Timeout = std::chrono::milliseconds;
/// The peer of a recv() that takes the first message, whoever sends it.
inline constexpr int kAnyRank = -1;

/// What a rank brings to a reduction, and where it takes the sums.
///
/// Lifetime: nothing is owned. A sum may lie where one of its own terms lies; otherwise nothing
/// overlaps.
struct TreeBuffers {
  const LeafDeal& deal;                  ///< the same on all ranks
  std::span<const void* const> nodes{};  ///< the data of each of deal.nodes(rank())
  std::span<void* const> sums{};         ///< room for each of deal.sums()
};

/// A send or a receive that was started.
///
/// Lifetime: the memory must stay valid until wait() returned or threw. Until then, do not write
/// what is sent, and neither read nor write what is received.
class Transfer {
 public:
  virtual ~Transfer() = default;
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  Transfer(Transfer&&) = delete;
  Transfer& operator=(Transfer&&) = delete;

  /// Blocks: until the message was sent or received.
  /// Errors: TimeoutError; CommError naming the peer when it died.
  virtual void wait(Timeout timeout) = 0;
  /// The rank that sent what was received, after wait(). -1: it was sent.
  [[nodiscard]] virtual int source() const { return -1; }
  /// Where the transport has a queue: returns the place behind which the message has been sent or
  /// received. Blocks: until the message is queued on the device, which may take the other rank's
  /// part the first time. Errors: as wait(). nullptr: there is no queue.
  [[nodiscard]] virtual std::shared_ptr<DeviceMark> queue(Timeout /*timeout*/) { return nullptr; }
};

/// Collective operations on plain memory between the ranks of one group.
///
/// Thread-safety: one collective runs at a time (comm::Group keeps the order). Other threads may
/// send and receive beside it if their (peer, tag) pairs differ. Collective: all ranks call the
/// same operations in the same order, with equal counts and types. A rank that receives never takes
/// the data of another operation for its own: it throws a CommError that names both. A rank that
/// only sends throws it at its next operation. NCCL alone does not compare: there data may mix
/// before the deadline, where both are named. Order of sums: the tree of LeafDeal over the ranks in
/// their order, or over the leaves of TreeBuffers. So the same leaves give the same bits on every
/// rank, in every run, on every implementation and for any spread of ranks over hosts. 16-bit
/// floats are summed in f32 and rounded once. Shape: a `count` is a number of elements per rank.
/// With zero an operation does nothing and waits for nobody. Errors: TimeoutError after `timeout`;
/// CommError when a peer died or calls differ. After either the transport is broken: every later
/// operation fails at once with the same cause.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  Transport(Transport&&) = delete;
  Transport& operator=(Transport&&) = delete;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Returns "gloo" or "in_process", for messages and benchmarks.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Says that the collectives that follow belong to this place of a training. Collectives of ranks
  /// at different places do not match. Does nothing in an implementation that does not compare.
  virtual void set_place(const TrainingPlace& /*place*/) {}

  /// The queue in which this transport's collectives take their place, behind what the calling
  /// thread has in its current stream. All memory is then of the queue's device, a collective
  /// returns as soon as it is queued, and its timeout counts from where the device begins it.
  /// nullptr: collectives happen in the calling thread, in the host's memory.
  [[nodiscard]] virtual DeviceQueue* queue() { return nullptr; }
  /// Who hears what becomes of the next collective, where there is a queue. When that collective
  /// throws, nobody hears of it.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps the listener
  virtual void listen(std::shared_ptr<CollectiveListener> /*listener*/) {}
  /// Where there is a queue: throws the cause if this transport ends, or has ended, operations of
  /// the queue early. What the device holds may then be garbage. Call it after the device has
  /// passed what you read. From any thread.
  virtual void check() {}

  /// Says that the sums that follow must be in the tree's order, where an implementation has a
  /// faster one too.
  virtual void set_exact(bool /*exact*/) {}

  /// Reduces in place, on every rank. kAvg divides the sum by size(): floats once at the end,
  /// integers truncate.
  virtual void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op, Timeout timeout) = 0;
  /// The same over the leaves of `buffers.deal`; kAvg divides by their number. `count` is that of
  /// one node. The deal must hold the whole tree where op is kAvg, and over several hosts.
  virtual void all_reduce(
      const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op, Timeout timeout) = 0;
  /// Reduces in place on `root`; `data` of the other ranks keeps its value.
  virtual void reduce(
      void* data, int64_t count, DType dtype, ReduceOp op, int root, Timeout timeout) = 0;
  /// `buffers.sums` are used on `root` only.
  virtual void reduce(const TreeBuffers& buffers,
                      int64_t count,
                      DType dtype,
                      ReduceOp op,
                      int root,
                      Timeout timeout) = 0;
  virtual void broadcast(void* data, int64_t count, DType dtype, int root, Timeout timeout) = 0;
  /// `output` holds size() * count elements, in rank order. `input` may lie in `output` at its own
  /// place (output + rank * count).
  virtual void all_gather(
      const void* input, void* output, int64_t count, DType dtype, Timeout timeout) = 0;
  /// Rank i contributes counts[i] elements.
  virtual void all_gather_v(
      const void* input, void* output, Counts counts, DType dtype, Timeout timeout) = 0;
  /// `output` is used on `root` only.
  virtual void gather(
      const void* input, void* output, int64_t count, DType dtype, int root, Timeout timeout) = 0;
  /// `input` (size() * count elements) is used on `root` only.
  virtual void scatter(
      const void* input, void* output, int64_t count, DType dtype, int root, Timeout timeout) = 0;
  /// `input` holds size() * count elements. Rank i gets the i-th part, reduced.
  virtual void reduce_scatter(const void* input,
                              void* output,
                              int64_t count,
                              DType dtype,
                              ReduceOp op,
                              Timeout timeout) = 0;
  /// Each node holds size() * count elements, and each sum `count`: part rank() of an all_reduce.
  virtual void reduce_scatter(
      const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op, Timeout timeout) = 0;
  /// Part i of `input` goes to rank i, and part j of `output` comes from rank j. A part has `count`
  /// elements.
  virtual void all_to_all(
      const void* input, void* output, int64_t count, DType dtype, Timeout timeout) = 0;
  /// Sends send_counts[i] elements to rank i and receives recv_counts[j] elements from rank j.
  virtual void all_to_all_v(const void* input,
                            Counts send_counts,
                            void* output,
                            Counts recv_counts,
                            DType dtype,
                            Timeout timeout) = 0;
  /// Returns when every rank has called it.
  virtual void barrier(Timeout timeout) = 0;

  /// Starts to send or to receive `bytes` bytes. Messages with the same (source, destination, tag)
  /// arrive in the order of their sends. Both sides must say the same size. Only Gloo and shared
  /// memory, and both together, receive from kAnyRank: others throw a UsageError. When a receive
  /// from kAnyRank and one that names the sender wait for the same message, shared memory gives it
  /// to the one that was started first, as MPI does, and Gloo to the one that names the sender.
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(const void* data,
                                                       size_t bytes,
                                                       int peer,
                                                       uint32_t tag) = 0;
  [[nodiscard]] virtual std::unique_ptr<Transfer> recv(void* data,
                                                       size_t bytes,
                                                       int peer,
                                                       uint32_t tag) = 0;

  /// Returns `bytes` of memory that all ranks read and write, zeros at first. Returns nullptr, on
  /// every rank, when the ranks cannot share memory or one of them cannot map more (which is
  /// logged). The system gives a page when it is first touched. An all_reduce of data that lies in
  /// one block on all ranks, at places that do not overlap, sums it where it lies. Collective.
  [[nodiscard]] virtual std::shared_ptr<SharedBlock> share(size_t bytes, Timeout timeout) = 0;

  /// Frees sockets and threads. Operations that wait wake up and throw; later ones throw at once.
  /// Idempotent, from any thread.
  virtual void close() = 0;
};

/// Any of the three reductions in a group of one, for implementations.
void reduce_alone(const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op);

}  // namespace argosy::transport
