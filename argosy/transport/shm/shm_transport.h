#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "argosy/transport/shm/neighbours.h"
#include "argosy/transport/shm/shm.h"
#include "argosy/transport/watched_transport.h"

// Internal to the room.
namespace argosy::transport {

/// What make_shm() returns: gives each operation to the class that knows it. ShmMeeting brings the
/// ranks together, ShmReduction adds, ShmMovement moves, Mailbox has the messages.
class Shm final : public WatchedTransport {
 public:
  Shm(std::shared_ptr<rendezvous::Store> store, int rank, int size, const ShmOptions& options);
  ~Shm() override { shut_down(); }
  Shm(const Shm&) = delete;
  Shm& operator=(const Shm&) = delete;

  [[nodiscard]] std::string name() const override { return "shm"; }

  /// Collective: connects the ranks.
  void connect_all();
  /// Returns how many rounds have begun in all operations, for tests.
  [[nodiscard]] uint64_t rounds() const { return neighbours_->rounds.begun(); }

 protected:
  void do_all_reduce(
      void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) override;
  void do_reduce(void* data,
                 int64_t count,
                 DType dtype,
                 ReduceOp op,
                 int root,
                 const Deadline& deadline) override;
  void do_reduce_scatter(const void* input,
                         void* output,
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
  std::shared_ptr<SharedBlock> do_share(size_t bytes, const Deadline& deadline) override;
  std::unique_ptr<Link> do_send(const void* data, size_t bytes, int peer, uint32_t tag) override;
  std::unique_ptr<Link> do_recv(void* data, size_t bytes, int peer, uint32_t tag) override;
  void interrupt() override;

 private:
  class SendLink;
  class RecvLink;

  void set_neighbours(std::shared_ptr<Neighbours> neighbours);
  [[nodiscard]] bool has_ended(int rank);
  /// Starts the rounds of the collective that runs.
  [[nodiscard]] Rounds::Operation start(const Deadline& deadline) {
    return neighbours_->rounds.start(call(), history(), deadline);
  }

  const ShmOptions options_;
  std::mutex neighbours_mutex_;  ///< for interrupt() while the ranks still connect
  bool interrupted_ = false;
  std::shared_ptr<Neighbours> neighbours_;
};

}  // namespace argosy::transport
