#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "argosy/transport/bytes.h"
#include "argosy/transport/gloo/gloo.h"
#include "argosy/transport/gloo/mesh.h"
#include "argosy/transport/watched_transport.h"

// Internal to the room: make_gloo()'s transport. Connections are in gloo.cpp, what only moves data
// in movement.cpp, what reduces it in reductions.cpp.
namespace argosy::transport {

/// Larger reductions and broadcasts travel in blocks, so that adding and sending overlap and the
/// memory beside the data is bounded: kWindow blocks per peer.
inline constexpr int64_t kBlockBytes = 1 << 20;
inline constexpr int64_t kWindow = 3;

/// The elements of a buffer that one rank reduces, cut into blocks.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t block = 1;

  [[nodiscard]] int64_t blocks() const { return (end - begin + block - 1) / block; }
  [[nodiscard]] int64_t start(int64_t i) const { return begin + i * block; }
  [[nodiscard]] int64_t length(int64_t i) const { return std::min(block, end - start(i)); }
};

/// What make_gloo() returns.
class Gloo final : public WatchedTransport {
 public:
  Gloo(std::shared_ptr<rendezvous::Store> store, int rank, int size, const GlooOptions& options)
      : WatchedTransport(std::move(store),
                         rank,
                         size,
                         {.transport = "gloo",
                          .group = options.group,
                          .world_ranks = options.world_ranks,
                          .job = options.job,
                          .patience = options.patience},
                         Deadline::after(options.timeout)),
        algorithm_(options.algorithm) {}
  ~Gloo() override { shut_down(); }
  Gloo(const Gloo&) = delete;
  Gloo& operator=(const Gloo&) = delete;

  [[nodiscard]] std::string name() const override { return "gloo"; }

  void connect_all(const GlooOptions& options);

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
  void do_all_gather(const void* /*input*/,
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
  void interrupt() override;
  void disconnect() override;

 private:
  class MeshLink final : public Link {
   public:
    MeshLink(std::shared_ptr<Mesh> mesh, Mesh::Pending pending)
        : mesh_(std::move(mesh)), pending_(std::move(pending)) {}
    void wait(const Deadline& deadline) override { mesh_->wait(pending_, deadline); }

   private:
    const std::shared_ptr<Mesh> mesh_;
    Mesh::Pending pending_;
  };

  /// Where the reduced segments go.
  struct Spread {
    bool to_all = false;
    int root = -1;
    void* data = nullptr;  ///< the whole buffer, in which the others' segments arrive
  };

  ListenOn choose_place(const GlooOptions& options, const Deadline& deadline);
  std::shared_ptr<Mesh> mark_interrupted();
  void set_mesh(std::shared_ptr<Mesh> mesh);

  template <typename Function>
  void for_each_peer(Function function) const {
    for (int i = 1; i < size(); ++i) {
      function((rank() + i) % size());  // each rank starts with another one
    }
  }

  Mesh::Pending transmit(
      uint32_t op, uint32_t phase, int peer, const void* data, int64_t bytes) const;
  Mesh::Pending receive(uint32_t op, uint32_t phase, int peer, void* data, int64_t bytes) const;
  static void add(std::vector<Mesh::Pending>& all, Mesh::Pending pending) {
    all.push_back(std::move(pending));
  }

  /// Names the collective that runs in its slots. A rank that calls something else, or has called
  /// something else before, waits at another slot. Messages of one slot arrive in order, so it does
  /// no harm when two collectives have the same number.
  [[nodiscard]] uint32_t slot_of_call() const {
    return static_cast<uint32_t>(history() ^ history() >> 32U);
  }

  static int64_t elements_per_block(int64_t element) { return kBlockBytes / element; }

  [[nodiscard]] std::vector<Segment> divide(int64_t count, int64_t element) const;
  std::byte* scratch(int64_t bytes);
  void direct(const void* input,
              void* output,
              int64_t count,
              DType dtype,
              ReduceOp op_kind,
              const Deadline& deadline);
  void reduce_segments(const void* input,
                       void* result,
                       const std::vector<Segment>& segments,
                       DType dtype,
                       ReduceOp op_kind,
                       const Deadline& deadline,
                       const Spread& spread);
  void ring(void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline);
  void divide_by_size(void* data, int64_t count, DType dtype);

  const GlooAlgorithm algorithm_;
  std::mutex mesh_mutex_;  ///< for interrupt() while the ranks still connect
  bool interrupted_ = false;
  std::shared_ptr<Mesh> mesh_;
  std::vector<std::byte> scratch_;
};

}  // namespace argosy::transport
