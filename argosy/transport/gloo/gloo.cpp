#include "argosy/transport/gloo/gloo.h"

#include <fmt/format.h>
#include <gloo/allreduce.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/strings.h"
#include "argosy/transport/gloo/host.h"
#include "argosy/transport/gloo/mesh.h"
#include "argosy/transport/gloo/no_sigpipe.h"
#include "argosy/transport/reduce.h"
#include "argosy/transport/watched_transport.h"

namespace argosy::transport {
namespace {

/// Up to here every rank sends all it has to every other and reduces by itself: one round trip
/// instead of two.
constexpr int64_t kDirectBytes = 32 << 10;
/// Larger reductions and broadcasts travel in blocks, so that adding and sending overlap and the
/// memory beside the data is bounded: kWindow blocks per peer.
constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kWindow = 3;

const std::byte* at(const void* memory, int64_t offset) {
  return static_cast<const std::byte*>(memory) + offset;
}
std::byte* at(void* memory, int64_t offset) {
  return static_cast<std::byte*>(memory) + offset;
}

/// The elements of a buffer that one rank reduces, cut into blocks.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t block = 1;

  [[nodiscard]] int64_t blocks() const { return (end - begin + block - 1) / block; }
  [[nodiscard]] int64_t start(int64_t i) const { return begin + i * block; }
  [[nodiscard]] int64_t length(int64_t i) const { return std::min(block, end - start(i)); }
};

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

  [[nodiscard]] std::string name() const override { return "gloo"; }

  void connect_all(const GlooOptions& options) {
    connect(options.timeout, [&](const Deadline& deadline) {
      if (size() == 1) {
        return;
      }
      const ListenOn where = choose_place(options, deadline);
      set_mesh(std::make_shared<Mesh>(rank(), size(), where, deadline));
      store().set(fmt::format("gloo/address/{}", rank()), mesh_->addresses(), deadline);
      for (int peer = 0; peer < size(); ++peer) {
        if (peer != rank()) {
          mesh_->connect(
              peer, await_key(fmt::format("gloo/address/{}", peer), peer, deadline), deadline);
        }
      }
      do_barrier(deadline);  // or a rank with nothing to do would leave while others still connect
    });
  }

 protected:
  void do_all_reduce(
      void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) override {
    const auto element = static_cast<int64_t>(size_of(dtype));
    if (algorithm_ == GlooAlgorithm::kRing) {
      ring(data, count, dtype, op, deadline);
    } else if (count * element <= kDirectBytes) {
      direct(data, data, count, dtype, op, deadline);
    } else {
      const auto segments = divide(count, element);
      const Segment& mine = segments[static_cast<size_t>(rank())];
      reduce_segments(data,
                      at(data, mine.begin * element),
                      segments,
                      dtype,
                      op,
                      deadline,
                      Spread{.to_all = true, .data = data});
    }
  }

  void do_reduce(void* data,
                 int64_t count,
                 DType dtype,
                 ReduceOp op,
                 int root,
                 const Deadline& deadline) override {
    const auto element = static_cast<int64_t>(size_of(dtype));
    const auto segments = divide(count, element);
    const Segment& mine = segments[static_cast<size_t>(rank())];
    // Only the root's data may change, so the others reduce into memory of their own.
    std::vector<std::byte> own(
        rank() == root ? 0 : static_cast<size_t>((mine.end - mine.begin) * element));
    reduce_segments(data,
                    rank() == root ? at(data, mine.begin * element) : own.data(),
                    segments,
                    dtype,
                    op,
                    deadline,
                    Spread{.root = root, .data = data});
  }

  void do_reduce_scatter(const void* input,
                         void* output,
                         int64_t count,
                         DType dtype,
                         ReduceOp op,
                         const Deadline& deadline) override {
    const int64_t block = elements_per_block(static_cast<int64_t>(size_of(dtype)));
    std::vector<Segment> segments;
    for (int r = 0; r < size(); ++r) {
      segments.push_back({r * count, (r + 1) * count, block});
    }
    reduce_segments(input, output, segments, dtype, op, deadline, Spread{});
  }

  /// Down a binomial tree, block by block.
  void do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) override {
    const uint32_t op = next_op_++;
    const Segment blocks{0, bytes, kBlockBytes};
    const int place = (rank() - root + size()) % size();
    const auto real = [&](int p) { return (p + root) % size(); };
    const int lowest = place == 0 ? size() : place & -place;
    std::vector<Mesh::Pending> receives, sends;
    for (int64_t i = 0; place != 0 && i < blocks.blocks(); ++i) {
      receives.push_back(
          receive(op, 0, real(place - lowest), at(data, blocks.start(i)), blocks.length(i)));
    }
    int farthest = 1;
    while (farthest * 2 < lowest) {
      farthest *= 2;
    }
    for (int64_t i = 0; i < blocks.blocks(); ++i) {
      if (place != 0) {
        mesh_->wait(receives[static_cast<size_t>(i)], deadline);
      }
      for (int distance = farthest; distance >= 1; distance /= 2) {
        if (distance < lowest && place + distance < size()) {
          sends.push_back(
              transmit(op, 0, real(place + distance), at(data, blocks.start(i)), blocks.length(i)));
        }
      }
    }
    mesh_->wait(sends, deadline);
  }

  void do_all_gather(const void* /*input*/,
                     void* output,
                     const Parts& parts,
                     const Deadline& deadline) override {
    const uint32_t op = next_op_++;
    const auto me = static_cast<size_t>(rank());
    std::vector<Mesh::Pending> pending;
    for_each_peer([&](int peer) {
      const auto p = static_cast<size_t>(peer);
      add(pending, receive(op, 0, peer, at(output, parts.offset[p]), parts.bytes[p]));
    });
    for_each_peer([&](int peer) {
      add(pending, transmit(op, 0, peer, at(output, parts.offset[me]), parts.bytes[me]));
    });
    mesh_->wait(pending, deadline);
  }

  void do_gather(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) override {
    const uint32_t op = next_op_++;
    std::vector<Mesh::Pending> pending;
    if (rank() != root) {
      add(pending, transmit(op, 0, root, input, bytes));
    } else {
      for_each_peer(
          [&](int peer) { add(pending, receive(op, 0, peer, at(output, peer * bytes), bytes)); });
    }
    mesh_->wait(pending, deadline);
  }

  void do_scatter(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) override {
    const uint32_t op = next_op_++;
    std::vector<Mesh::Pending> pending;
    if (rank() != root) {
      add(pending, receive(op, 0, root, output, bytes));
    } else {
      for_each_peer(
          [&](int peer) { add(pending, transmit(op, 0, peer, at(input, peer * bytes), bytes)); });
    }
    mesh_->wait(pending, deadline);
  }

  void do_all_to_all(const void* input,
                     const Parts& sends,
                     void* output,
                     const Parts& receives,
                     const Deadline& deadline) override {
    const uint32_t op = next_op_++;
    std::vector<Mesh::Pending> pending;
    for_each_peer([&](int peer) {
      const auto p = static_cast<size_t>(peer);
      add(pending, receive(op, 0, peer, at(output, receives.offset[p]), receives.bytes[p]));
    });
    for_each_peer([&](int peer) {
      const auto p = static_cast<size_t>(peer);
      add(pending, transmit(op, 0, peer, at(input, sends.offset[p]), sends.bytes[p]));
    });
    mesh_->wait(pending, deadline);
  }

  /// Dissemination: after round k every rank has heard, directly or not, of 2^(k+1) ranks.
  void do_barrier(const Deadline& deadline) override {
    const uint32_t op = next_op_++;
    uint32_t round = 0;
    for (int distance = 1; distance < size(); distance *= 2, ++round) {
      std::byte here{}, there{};
      auto received = receive(op, round, (rank() - distance + size()) % size(), &there, 1);
      auto sent = transmit(op, round, (rank() + distance) % size(), &here, 1);
      mesh_->wait(received, deadline);
      mesh_->wait(sent, deadline);
    }
  }

  std::unique_ptr<Link> do_send(const void* data, size_t bytes, int peer, uint32_t tag) override {
    return std::make_unique<MeshLink>(
        mesh_, mesh_->send(peer, message_slot(tag, bytes), data, static_cast<int64_t>(bytes)));
  }

  std::unique_ptr<Link> do_recv(void* data, size_t bytes, int peer, uint32_t tag) override {
    return std::make_unique<MeshLink>(
        mesh_, mesh_->recv(peer, message_slot(tag, bytes), data, static_cast<int64_t>(bytes)));
  }

  void interrupt() override {
    if (const auto mesh = mark_interrupted()) {
      mesh->interrupt();
    }
  }

  void disconnect() override {
    if (const auto mesh = mark_interrupted()) {
      mesh->close();
    }
  }

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

  ListenOn choose_place(const GlooOptions& options, const Deadline& deadline) {
    for (const auto& name : {options.interface,
                             env::get("ARGOSY_IFNAME").value_or(""),
                             env::get("GLOO_SOCKET_IFNAME").value_or("")}) {
      if (!name.empty()) {
        return {.interface = name};
      }
    }
    if (!options.host.empty()) {
      return {.host = options.host};
    }
    const HostCard mine{loopback_id(), source_address(host_of(store().describe()))};
    store().set(fmt::format("gloo/host/{}", rank()), mine.loopback + "\n" + mine.address, deadline);
    std::vector<HostCard> others;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) {
        const auto lines =
            strings::split(await_key(fmt::format("gloo/host/{}", peer), peer, deadline), '\n');
        others.push_back({lines.front(), lines.back()});
      }
    }
    const std::string address = transport::choose_address(mine, others);
    if (address.empty()) {
      throw ConfigError("transport.gloo",
                        "this host has no address but loopback, and ranks run on other hosts. "
                        "Set ARGOSY_IFNAME.");
    }
    return {.host = address};
  }

  std::shared_ptr<Mesh> mark_interrupted() {
    const std::lock_guard lock(mesh_mutex_);
    interrupted_ = true;
    return mesh_;
  }

  void set_mesh(std::shared_ptr<Mesh> mesh) {
    const std::lock_guard lock(mesh_mutex_);
    mesh_ = std::move(mesh);
    if (interrupted_) {
      mesh_->interrupt();
    }
  }

  template <typename Function>
  void for_each_peer(Function function) const {
    for (int i = 1; i < size(); ++i) {
      function((rank() + i) % size());  // each rank starts with another one
    }
  }

  Mesh::Pending transmit(
      uint32_t op, uint32_t phase, int peer, const void* data, int64_t bytes) const {
    return bytes == 0 ? Mesh::Pending()
                      : mesh_->send(peer, collective_slot(op, phase, bytes), data, bytes);
  }
  Mesh::Pending receive(uint32_t op, uint32_t phase, int peer, void* data, int64_t bytes) const {
    return bytes == 0 ? Mesh::Pending()
                      : mesh_->recv(peer, collective_slot(op, phase, bytes), data, bytes);
  }
  static void add(std::vector<Mesh::Pending>& all, Mesh::Pending pending) {
    all.push_back(std::move(pending));
  }

  static int64_t elements_per_block(int64_t element) { return kBlockBytes / element; }

  /// Equal shares for all ranks; the last ones may be shorter or empty.
  [[nodiscard]] std::vector<Segment> divide(int64_t count, int64_t element) const {
    const int64_t share = (count + size() - 1) / size();
    std::vector<Segment> segments;
    for (int r = 0; r < size(); ++r) {
      segments.push_back({std::min(count, r * share),
                          std::min(count, (r + 1) * share),
                          elements_per_block(element)});
    }
    return segments;
  }

  std::byte* scratch(int64_t bytes) {
    if (static_cast<int64_t>(scratch_.size()) < bytes) {
      scratch_.resize(static_cast<size_t>(bytes));
    }
    return scratch_.data();
  }

  /// Everything to everybody, then each rank reduces all of it.
  void direct(const void* input,
              void* output,
              int64_t count,
              DType dtype,
              ReduceOp op_kind,
              const Deadline& deadline) {
    const uint32_t op = next_op_++;
    const int64_t bytes = count * static_cast<int64_t>(size_of(dtype));
    std::byte* memory = scratch(size() * bytes);
    std::vector<Mesh::Pending> pending;
    std::vector<const void*> sources(static_cast<size_t>(size()), input);
    for_each_peer([&](int peer) {
      sources[static_cast<size_t>(peer)] = memory + peer * bytes;
      add(pending, receive(op, 0, peer, memory + peer * bytes, bytes));
    });
    for_each_peer([&](int peer) { add(pending, transmit(op, 0, peer, input, bytes)); });
    mesh_->wait(pending, deadline);
    transport::reduce(sources, output, count, dtype, op_kind);
  }

  /// Each rank receives its segment from all others, reduces it in rank order block by block, and
  /// hands each block on at once.
  ///
  /// A block of another's segment arrives where this rank's own data was sent from; it cannot come
  /// before that data has left, because it is made from it.
  void reduce_segments(const void* input,
                       void* result,
                       const std::vector<Segment>& segments,
                       DType dtype,
                       ReduceOp op_kind,
                       const Deadline& deadline,
                       const Spread& spread) {
    const uint32_t op = next_op_++;
    const auto element = static_cast<int64_t>(size_of(dtype));
    const Segment& mine = segments[static_cast<size_t>(rank())];
    const int64_t block_bytes = std::min(mine.block, mine.end - mine.begin) * element;
    const int64_t window = std::min(kWindow, mine.blocks());
    std::byte* memory = scratch(window * size() * block_bytes);
    const auto place = [&](int64_t i, int peer) {
      return memory + ((i % kWindow) * size() + peer) * block_bytes;
    };

    std::vector<std::vector<Mesh::Pending>> arriving(static_cast<size_t>(mine.blocks()));
    const auto expect = [&](int64_t i) {
      for_each_peer([&](int peer) {
        add(arriving[static_cast<size_t>(i)],
            receive(op, 0, peer, place(i, peer), mine.length(i) * element));
      });
    };
    for (int64_t i = 0; i < window; ++i) {
      expect(i);
    }
    std::vector<Mesh::Pending> pending;
    int64_t most_blocks = 0;
    for (const Segment& segment : segments) {
      most_blocks = std::max(most_blocks, segment.blocks());
    }
    for (int64_t i = 0; i < most_blocks; ++i) {
      for_each_peer([&](int peer) {
        const Segment& theirs = segments[static_cast<size_t>(peer)];
        if (i >= theirs.blocks()) {
          return;
        }
        if (spread.to_all || spread.root == rank()) {
          add(pending,
              receive(op,
                      1,
                      peer,
                      at(spread.data, theirs.start(i) * element),
                      theirs.length(i) * element));
        }
        add(pending,
            transmit(
                op, 0, peer, at(input, theirs.start(i) * element), theirs.length(i) * element));
      });
    }

    std::vector<const void*> sources(static_cast<size_t>(size()));
    for (int64_t i = 0; i < mine.blocks(); ++i) {
      mesh_->wait(arriving[static_cast<size_t>(i)], deadline);
      for (int r = 0; r < size(); ++r) {
        sources[static_cast<size_t>(r)] =
            r == rank() ? at(input, mine.start(i) * element) : place(i, r);
      }
      std::byte* reduced = at(result, (mine.start(i) - mine.begin) * element);
      transport::reduce(sources, reduced, mine.length(i), dtype, op_kind);
      if (i + kWindow < mine.blocks()) {
        expect(i + kWindow);
      }
      const int64_t bytes = mine.length(i) * element;
      if (spread.to_all) {
        for_each_peer([&](int peer) { add(pending, transmit(op, 1, peer, reduced, bytes)); });
      } else if (spread.root >= 0 && spread.root != rank()) {
        add(pending, transmit(op, 1, spread.root, reduced, bytes));
      }
    }
    mesh_->wait(pending, deadline);
  }

  /// Gloo's ring; the average is divided at the end, in place.
  void ring(void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) {
    ::gloo::AllreduceOptions options(mesh_->context());
    const ReduceOp step = op == ReduceOp::kAvg ? ReduceOp::kSum : op;
    const size_t element = size_of(dtype);
    options.setReduceFunction([=](void* to, const void* a, const void* b, size_t n) {
      const void* sources[] = {a, b};
      transport::reduce(sources, to, static_cast<int64_t>(n), dtype, step);
    });
    const auto n = static_cast<size_t>(count);
    switch (element) {
      case 1:
        options.setOutput(static_cast<uint8_t*>(data), n);
        break;
      case 2:
        options.setOutput(static_cast<uint16_t*>(data), n);
        break;
      case 4:
        options.setOutput(static_cast<uint32_t*>(data), n);
        break;
      default:
        options.setOutput(static_cast<uint64_t*>(data), n);
    }
    options.setTag(next_op_++);
    options.setTimeout(std::max(deadline.remaining(), std::chrono::milliseconds(1)));
    const NoSigpipe quiet;
    try {
      ::gloo::allreduce(options);
    } catch (const std::exception& e) {
      if (deadline.expired()) {
        throw LinkTimeout{};
      }
      throw LinkBroken{-1, e.what()};
    }
    if (op == ReduceOp::kAvg) {
      divide_by_size(data, count, dtype);
    }
  }

  void divide_by_size(void* data, int64_t count, DType dtype) {
    // The average of the sum and n - 1 times nothing.
    const std::vector<std::byte> zeros(static_cast<size_t>(count) * size_of(dtype));
    std::vector<const void*> sources(static_cast<size_t>(size()), zeros.data());
    sources[0] = data;
    transport::reduce(sources, data, count, dtype, ReduceOp::kAvg);
  }

  const GlooAlgorithm algorithm_;
  std::mutex mesh_mutex_;  ///< for interrupt() while the ranks still connect
  bool interrupted_ = false;
  std::shared_ptr<Mesh> mesh_;
  uint32_t next_op_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace

std::unique_ptr<Transport> make_gloo(std::shared_ptr<rendezvous::Store> store,
                                     int rank,
                                     int size,
                                     const GlooOptions& options) {
  auto transport = std::make_unique<Gloo>(std::move(store), rank, size, options);
  transport->connect_all(options);
  return transport;
}

}  // namespace argosy::transport
