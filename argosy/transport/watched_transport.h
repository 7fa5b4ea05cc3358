#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/transport/call.h"
#include "argosy/transport/device_queue.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/lobby.h"
#include "argosy/transport/peer_watch.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

/// The part of a buffer that belongs to each rank, in bytes.
struct Parts {
  std::vector<int64_t> offset{};
  std::vector<int64_t> bytes{};

  [[nodiscard]] static Parts equal(int n, int64_t bytes);
  [[nodiscard]] static Parts of(Counts counts, int64_t element_bytes);
};

/// What all transports have in common. It checks arguments, settles operations that need no partner
/// (one rank, or nothing to move) and numbers the collectives. It turns a broken link, a deadline
/// or a mismatch into the exception that names the culprit; the transport is then broken for good.
///
/// An implementation provides the protected functions, on bytes and with a Deadline. They are
/// called for groups of two ranks and more, and throw what link_errors.h holds.
class WatchedTransport : public Transport {
 public:
  [[nodiscard]] int rank() const final { return rank_; }
  [[nodiscard]] int size() const final { return size_; }

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op, Timeout timeout) final;
  void all_reduce(
      const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op, Timeout timeout) final;
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root, Timeout timeout) final;
  void reduce(const TreeBuffers& buffers,
              int64_t count,
              DType dtype,
              ReduceOp op,
              int root,
              Timeout timeout) final;
  void broadcast(void* data, int64_t count, DType dtype, int root, Timeout timeout) final;
  void all_gather(
      const void* input, void* output, int64_t count, DType dtype, Timeout timeout) final;
  void all_gather_v(
      const void* input, void* output, Counts counts, DType dtype, Timeout timeout) final;
  void gather(
      const void* input, void* output, int64_t count, DType dtype, int root, Timeout timeout) final;
  void scatter(
      const void* input, void* output, int64_t count, DType dtype, int root, Timeout timeout) final;
  void reduce_scatter(const void* input,
                      void* output,
                      int64_t count,
                      DType dtype,
                      ReduceOp op,
                      Timeout timeout) final;
  void reduce_scatter(
      const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op, Timeout timeout) final;
  void all_to_all(
      const void* input, void* output, int64_t count, DType dtype, Timeout timeout) final;
  void all_to_all_v(const void* input,
                    Counts send_counts,
                    void* output,
                    Counts recv_counts,
                    DType dtype,
                    Timeout timeout) final;
  void barrier(Timeout timeout) final;
  [[nodiscard]] std::unique_ptr<Transfer> send(const void* data,
                                               size_t bytes,
                                               int peer,
                                               uint32_t tag) final;
  [[nodiscard]] std::unique_ptr<Transfer> recv(void* data,
                                               size_t bytes,
                                               int peer,
                                               uint32_t tag) final;
  [[nodiscard]] std::shared_ptr<SharedBlock> share(size_t bytes, Timeout timeout) final;
  void close() final;

  void set_place(const TrainingPlace& place) final { place_ = place; }
  /// The collectives that follow are steps of `whole`, a collective of a transport that is made of
  /// several transports. They are compared and named as such.
  void do_steps_of(const Call& whole) { whole_ = whole; }

 protected:
  /// A send or receive of the implementation. wait() throws LinkBroken, LinkTimeout and Mismatch.
  class Link {
   public:
    virtual ~Link() = default;
    Link() = default;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    Link(Link&&) = delete;
    Link& operator=(Link&&) = delete;
    virtual void wait(const Deadline& deadline) = 0;
    /// See Transfer::source().
    [[nodiscard]] virtual int source() const { return -1; }
    /// See Transfer::queue().
    virtual std::shared_ptr<DeviceMark> queue(const Deadline& /*deadline*/) { return nullptr; }
  };

  /// Announces this rank. `interrupt` of the options is set here, to interrupt().
  WatchedTransport(std::shared_ptr<rendezvous::Store> store,
                   int rank,
                   int size,
                   PeerWatchOptions options,
                   const Deadline& deadline);

  virtual void do_all_reduce(const TreeBuffers& buffers,
                             int64_t count,
                             DType dtype,
                             ReduceOp op,
                             const Deadline& deadline) = 0;
  virtual void do_reduce(const TreeBuffers& buffers,
                         int64_t count,
                         DType dtype,
                         ReduceOp op,
                         int root,
                         const Deadline& deadline) = 0;
  virtual void do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) = 0;
  virtual void do_all_gather(const void* input,
                             void* output,
                             const Parts& parts,
                             const Deadline& deadline) = 0;
  virtual void do_gather(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) = 0;
  virtual void do_scatter(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) = 0;
  virtual void do_reduce_scatter(const TreeBuffers& buffers,
                                 int64_t count,
                                 DType dtype,
                                 ReduceOp op,
                                 const Deadline& deadline) = 0;
  virtual void do_all_to_all(const void* input,
                             const Parts& sends,
                             void* output,
                             const Parts& receives,
                             const Deadline& deadline) = 0;
  virtual void do_barrier(const Deadline& deadline) = 0;
  virtual std::unique_ptr<Link> do_send(const void* data, size_t bytes, int peer, uint32_t tag) = 0;
  /// `peer` is kAnyRank only where receives_from_any().
  virtual std::unique_ptr<Link> do_recv(void* data, size_t bytes, int peer, uint32_t tag) = 0;
  [[nodiscard]] virtual bool receives_from_any() const { return false; }
  virtual std::shared_ptr<SharedBlock> do_share(size_t /*bytes*/, const Deadline& /*deadline*/) {
    return nullptr;
  }
  /// Where an implementation's memory is a device's: copies, and adds what one rank has, there.
  virtual void do_copy(void* to, const void* from, int64_t bytes);
  virtual void do_reduce_alone(const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op);
  /// Whether the next sum is in the tree's order. Asked once for each reduction; see call().
  [[nodiscard]] virtual bool sums_exactly() const { return true; }
  /// Where collectives are only queued: calls `body`, which queues this one, and sees to what
  /// becomes of it. `call` has its number in the group. Throws as the functions above, before the
  /// collective is queued.
  virtual void issue(const Call& call, Timeout timeout, const std::function<void()>& body);
  /// Makes all operations that wait throw LinkBroken, and later ones at once. Idempotent, from any
  /// thread.
  virtual void interrupt() = 0;
  /// Does the same at the end of a group in which nothing failed. Data that was sent still arrives.
  virtual void disconnect() { interrupt(); }

  /// Runs `body`, which connects the ranks, as operation 0. So a death or a missing rank is named
  /// there too.
  template <typename Body>
  void connect(std::chrono::milliseconds timeout, Body body) {
    number({.op = Op::kConnect});
    run_now(timeout, body);
  }
  /// How the ranks find each other while they connect.
  [[nodiscard]] Lobby lobby() { return {*store_, *watch_, names_}; }
  /// Ends the watch. An implementation's destructor calls it first, while interrupt() still works.
  void shut_down();
  /// The collective that runs, or ran last.
  [[nodiscard]] const Call& call() const { return call_; }
  /// A digest of that collective and of all before it. Ranks whose histories agree have called the
  /// same operations so far.
  [[nodiscard]] uint64_t history() const { return history_; }
  [[nodiscard]] const RankNames& names() const { return names_; }
  [[nodiscard]] const LeafDeal& one_each() const { return one_each_; }
  [[nodiscard]] PeerWatch& watch() { return *watch_; }
  /// The exception that the caller sees when `what` failed by `error`, which the functions above
  /// threw. Other exceptions than theirs are returned as they are.
  [[nodiscard]] std::exception_ptr verdict_on(const Attempt& what, const std::exception_ptr& error);

 private:
  class WatchedTransfer;

  template <typename Body>
  void run(const Call& call, Timeout timeout, Body body);
  template <typename Body>
  void run_now(Timeout timeout, Body body);
  void number(const Call& call);
  template <typename Body>
  void run_sum(Call call, const TreeBuffers& buffers, int64_t count, Timeout timeout, Body body);
  void blame(const Attempt& what);
  [[noreturn]] void give_up(std::exception_ptr cause);
  void check_rank(const char* op, const char* what, int value) const;
  void check_tree(const char* op, const TreeBuffers& buffers, bool takes, ReduceOp reduction) const;

  const std::shared_ptr<rendezvous::Store> store_;
  const int rank_;
  const int size_;
  const RankNames names_;
  const LeafDeal one_each_;  ///< one leaf for each rank
  int64_t next_ = 0;         ///< number of the next collective
  std::optional<Call> whole_;
  TrainingPlace place_;
  Call call_;
  uint64_t history_ = 0;
  std::unique_ptr<PeerWatch> watch_;
};

template <typename Body>
void WatchedTransport::run(const Call& call, Timeout timeout, Body body) {
  number(call);
  if (queue() != nullptr) {
    issue(call_, timeout, [&] { body(Deadline::after(timeout)); });
    return;
  }
  run_now(timeout, body);
}

template <typename Body>
void WatchedTransport::run_now(Timeout timeout, Body body) {
  const Attempt what{.op = name_of(call_.op), .seq = watch_->begin(call_), .timeout = timeout};
  try {
    body(Deadline::after(timeout));
  } catch (...) {
    blame(what);
    watch_->end();
    throw;
  }
  watch_->end();
}

}  // namespace argosy::transport
