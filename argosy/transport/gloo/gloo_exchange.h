#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/transport/gloo/mesh.h"

// Internal to the room.
namespace argosy::transport {

/// Larger reductions and broadcasts travel in blocks, so that adding and sending overlap and the
/// memory beside the data is bounded.
inline constexpr int64_t kBlockBytes = 1 << 20;

/// The messages of one collective between this rank and the others. A message of 0 bytes is none.
class GlooExchange final {
 public:
  /// Bytes that go to another rank, or that come from one.
  struct Outgoing {
    const void* data = nullptr;
    int64_t bytes = 0;
  };
  struct Incoming {
    void* data = nullptr;
    int64_t bytes = 0;
  };

  /// `slot` names the collective. A rank that calls something else, or has called something else
  /// before, waits at another slot. Messages of one slot arrive in order, so it does no harm when
  /// two collectives have the same number.
  GlooExchange(Mesh& mesh, int rank, int size, uint32_t slot, const Deadline& deadline)
      : mesh_(mesh), rank_(rank), size_(size), slot_(slot), deadline_(deadline) {}

  [[nodiscard]] Mesh& mesh() const { return mesh_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] uint32_t slot() const { return slot_; }
  [[nodiscard]] const Deadline& deadline() const { return deadline_; }

  /// Each rank starts with another one.
  template <typename Function>
  void for_each_peer(Function function) const {
    for (int i = 1; i < size_; ++i) {
      function((rank_ + i) % size_);
    }
  }

  /// Messages of one `phase` between two ranks arrive in order.
  [[nodiscard]] Mesh::Pending send(int peer, const Outgoing& piece, uint32_t phase = 0) const {
    return piece.bytes == 0
               ? Mesh::Pending()
               : mesh_.send(
                     peer, collective_slot(slot_, phase, piece.bytes), piece.data, piece.bytes);
  }
  [[nodiscard]] Mesh::Pending receive(int peer, const Incoming& piece, uint32_t phase = 0) const {
    return piece.bytes == 0
               ? Mesh::Pending()
               : mesh_.recv(
                     peer, collective_slot(slot_, phase, piece.bytes), piece.data, piece.bytes);
  }
  void wait(Mesh::Pending& pending) const { mesh_.wait(pending, deadline_); }
  void wait(std::vector<Mesh::Pending>& all) const { mesh_.wait(all, deadline_); }

  /// Receives `incoming(peer)` from each other rank and sends it `outgoing(peer)`. Returns when all
  /// is done.
  template <typename In, typename Out>
  void with_each_peer(In incoming, Out outgoing) const {
    std::vector<Mesh::Pending> pending;
    for_each_peer([&](int peer) { pending.push_back(receive(peer, incoming(peer))); });
    for_each_peer([&](int peer) { pending.push_back(send(peer, outgoing(peer))); });
    wait(pending);
  }

 private:
  Mesh& mesh_;
  const int rank_;
  const int size_;
  const uint32_t slot_;
  const Deadline deadline_;
};

}  // namespace argosy::transport
