#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "argosy/transport/forwarding_transport.h"
#include "argosy/transport/shm/neighbours.h"
#include "argosy/transport/shm/shm.h"
#include "argosy/transport/shm/shm_movement.h"
#include "argosy/transport/shm/shm_reduction.h"

// Internal to the room.
namespace argosy::transport {

/// What make_shm() returns: gives each operation to the class that knows it. ShmMeeting brings the
/// ranks together, ShmReduction adds, ShmMovement moves, Mailbox has the messages.
class Shm final : public ForwardingTransport<Shm> {
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

  // For ForwardingTransport.
  [[nodiscard]] ShmReduction reduction(const LeafDeal& deal,
                                       DType dtype,
                                       ReduceOp op,
                                       const Deadline& deadline) {
    return {start(deadline), deal, dtype, op, neighbours_->blocks};
  }
  [[nodiscard]] ShmMovement movement(const Deadline& deadline) {
    return ShmMovement(start(deadline));
  }

 protected:
  std::shared_ptr<SharedBlock> do_share(size_t bytes, const Deadline& deadline) override;
  std::unique_ptr<Link> do_send(const void* data, size_t bytes, int peer, uint32_t tag) override;
  std::unique_ptr<Link> do_recv(void* data, size_t bytes, int peer, uint32_t tag) override;
  [[nodiscard]] bool receives_from_any() const override { return true; }
  void interrupt() override;

 private:
  class SendLink;
  class RecvLink;

  /// Starts the rounds of the collective that runs.
  [[nodiscard]] Rounds::Operation start(const Deadline& deadline) {
    return neighbours_->rounds.start(call(), history(), deadline);
  }

  const ShmOptions options_;
  Interruptible<Neighbours> neighbours_;
};

}  // namespace argosy::transport
