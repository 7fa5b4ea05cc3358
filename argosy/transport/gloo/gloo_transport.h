#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "argosy/transport/forwarding_transport.h"
#include "argosy/transport/gloo/gloo.h"
#include "argosy/transport/gloo/gloo_exchange.h"
#include "argosy/transport/gloo/gloo_movement.h"
#include "argosy/transport/gloo/gloo_reduction.h"
#include "argosy/transport/gloo/mesh.h"

// Internal to the room.
namespace argosy::transport {

/// What make_gloo() returns. GlooReduction adds, GlooMovement moves, Mesh has the connections.
class Gloo final : public ForwardingTransport<Gloo> {
 public:
  Gloo(std::shared_ptr<rendezvous::Store> store, int rank, int size, const GlooOptions& options);
  ~Gloo() override { shut_down(); }
  Gloo(const Gloo&) = delete;
  Gloo& operator=(const Gloo&) = delete;

  [[nodiscard]] std::string name() const override { return "gloo"; }

  /// Collective: connects the ranks.
  void connect_all(const GlooOptions& options);

  // For ForwardingTransport.
  [[nodiscard]] GlooReduction reduction(const LeafDeal& deal,
                                        DType dtype,
                                        ReduceOp op,
                                        const Deadline& deadline) {
    return {exchange(deadline), deal, dtype, op, scratch_};
  }
  [[nodiscard]] GlooMovement movement(const Deadline& deadline) {
    return GlooMovement(exchange(deadline));
  }

 protected:
  std::unique_ptr<Link> do_send(const void* data, size_t bytes, int peer, uint32_t tag) override;
  std::unique_ptr<Link> do_recv(void* data, size_t bytes, int peer, uint32_t tag) override;
  [[nodiscard]] bool receives_from_any() const override { return true; }
  void interrupt() override;
  void disconnect() override;

 private:
  class MeshLink;

  [[nodiscard]] ListenOn choose_place(const GlooOptions& options, const Deadline& deadline);
  /// Starts the messages of the collective that runs.
  [[nodiscard]] GlooExchange exchange(const Deadline& deadline);

  std::vector<std::byte> scratch_;  ///< of reductions
  Interruptible<Mesh> mesh_;
};

}  // namespace argosy::transport
