#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "argosy/transport/shared_block.h"
#include "argosy/transport/types.h"

namespace argosy::transport {

/// Element count per rank for the uneven operations; size() entries.
using Counts = std::span<const int64_t>;
using Timeout = std::chrono::milliseconds;

/// A send or receive that was started and not yet waited for. The memory it was given must stay
/// valid, and unread or unwritten, until wait() returned or threw.
class Transfer {
 public:
  virtual ~Transfer() = default;
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  Transfer(Transfer&&) = delete;
  Transfer& operator=(Transfer&&) = delete;

  /// Errors: TimeoutError; CommError naming the peer when it died.
  virtual void wait(Timeout timeout) = 0;
};

/// Collective operations on plain memory between the ranks of one group.
///
/// Thread-safety: one collective at a time (comm::Group keeps the order); send and recv may run
/// beside it from other threads, if their (peer, tag) pairs differ.
/// Collective: all ranks call the same operations in the same order with equal counts and types.
/// Sums are taken in rank order 0, 1, … n-1, so the same inputs give the same bits on every rank,
/// in every run and on every implementation but make_hierarchical(), which adds on each host first:
/// its bits are the same for the same spread of ranks over hosts. 16-bit floats are summed in f32
/// and rounded once. `count`s are elements; zero is allowed and still a synchronisation-free no-op
/// on every rank. Errors: TimeoutError after `timeout`; CommError when a peer died. After either,
/// the transport is broken: every later operation fails at once with the same cause.
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
  /// "gloo", "in_process": for messages and benchmarks.
  [[nodiscard]] virtual std::string name() const = 0;

  /// The collectives that follow belong to this place of a training: those of ranks at different
  /// places do not match. Does nothing where an implementation does not compare.
  virtual void set_place(const TrainingPlace& /*place*/) {}

  /// In place. kAvg divides the sum by size(): floats once at the end, integers truncate.
  virtual void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op, Timeout timeout) = 0;
  /// In place on `root`; `data` of the other ranks keeps its value.
  virtual void reduce(
      void* data, int64_t count, DType dtype, ReduceOp op, int root, Timeout timeout) = 0;
  virtual void broadcast(void* data, int64_t count, DType dtype, int root, Timeout timeout) = 0;
  /// `output` holds size() * count elements, in rank order; may be called with input inside output
  /// at its own place (output + rank * count).
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
  /// `input` holds size() * count elements; rank i gets the reduced i-th part.
  virtual void reduce_scatter(const void* input,
                              void* output,
                              int64_t count,
                              DType dtype,
                              ReduceOp op,
                              Timeout timeout) = 0;
  /// Part i of `input` goes to rank i; part j of `output` comes from rank j; `count` elements each.
  virtual void all_to_all(
      const void* input, void* output, int64_t count, DType dtype, Timeout timeout) = 0;
  /// The same with send_counts[i] elements for rank i and recv_counts[j] from rank j.
  virtual void all_to_all_v(const void* input,
                            Counts send_counts,
                            void* output,
                            Counts recv_counts,
                            DType dtype,
                            Timeout timeout) = 0;
  /// Returns when every rank has called it.
  virtual void barrier(Timeout timeout) = 0;

  /// Starts to send or receive `bytes` bytes. Messages with the same (source, destination, tag)
  /// arrive in the order of their sends. The receiver's size must be the sender's.
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(const void* data,
                                                       size_t bytes,
                                                       int peer,
                                                       uint32_t tag) = 0;
  [[nodiscard]] virtual std::unique_ptr<Transfer> recv(void* data,
                                                       size_t bytes,
                                                       int peer,
                                                       uint32_t tag) = 0;

  /// Collective: `bytes` of memory that all ranks read and write, zeros at first; nullptr, on every
  /// rank, where they cannot share memory, or one cannot map more (which is logged). Pages are
  /// taken from the system when they are first touched. An all_reduce of data that lies in one
  /// block on all ranks, at places that do not overlap, sums it where it lies.
  [[nodiscard]] virtual std::shared_ptr<SharedBlock> share(size_t bytes, Timeout timeout) = 0;

  /// Frees sockets and threads; later operations throw. Idempotent; from any thread: it also wakes
  /// operations that wait, which then throw.
  virtual void close() = 0;
};

}  // namespace argosy::transport
