#include "argosy/transport/hierarchical/hierarchical.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/transport/bytes.h"
#include "argosy/transport/gloo/gloo.h"
#include "argosy/transport/hierarchical/layout.h"
#include "argosy/transport/hierarchical/wide.h"
#include "argosy/transport/shm/shm.h"
#include "argosy/transport/watched_transport.h"

namespace argosy::transport {
namespace {

/// Of an all_reduce at a time between the hosts.
constexpr int64_t kBlockBytes = int64_t{8} << 20;

/// A transport between some of the ranks, whose errors become ours.
class Part final {
 public:
  Part() = default;
  Part(std::unique_ptr<Transport> transport, std::vector<int> members)
      : transport_(std::move(transport)),
        steps_(dynamic_cast<WatchedTransport*>(transport_.get())),
        members_(std::move(members)) {}

  explicit operator bool() const { return transport_ != nullptr; }
  [[nodiscard]] std::shared_ptr<Transport> transport() const { return transport_; }

  /// A message.
  template <typename Operation>
  auto run(Operation operation) const {
    return translated(members_, [&] { return operation(*transport_); });
  }
  /// A step of the collective `whole`, by which its ranks compare and name it.
  template <typename Operation>
  void run_step(const Call& whole, Operation operation) const {
    steps_->do_steps_of(whole);
    run(operation);
  }
  void close() const {
    if (transport_ != nullptr) {
      transport_->close();
    }
  }

  /// `members`: our ranks, in the order of the part's.
  template <typename Operation>
  static auto translated(const std::vector<int>& members, Operation operation) {
    try {
      return operation();
    } catch (const TimeoutError& late) {
      throw LinkTimeout{ours(members, late.peers())};
    } catch (const CommError& broken) {
      if (broken.context().mismatch) {
        throw Mismatch{.reason = broken.what(), .scope = Mismatch::Scope::kPart};
      }
      const std::vector<int> peers = ours(members, broken.peers());
      throw LinkBroken{peers.empty() ? -1 : peers.front(), broken.what()};
    }
  }

 private:
  static std::vector<int> ours(const std::vector<int>& members, const std::vector<int>& peers) {
    std::vector<int> ranks;
    for (const int peer : peers) {
      if (peer >= 0 && peer < static_cast<int>(members.size())) {
        ranks.push_back(members[static_cast<size_t>(peer)]);
      }
    }
    return ranks;
  }

  std::shared_ptr<Transport> transport_{};
  WatchedTransport* steps_ = nullptr;  ///< the same
  std::vector<int> members_{};
};

class Hierarchical final : public WatchedTransport {
 public:
  Hierarchical(std::shared_ptr<rendezvous::Store> store,
               int rank,
               int size,
               const HierarchicalOptions& options)
      : WatchedTransport(store,
                         rank,
                         size,
                         {.transport = "hierarchical",
                          .group = options.group,
                          .world_ranks = options.world_ranks,
                          .job = options.job,
                          .job_ranks = options.job_ranks,
                          .patience = options.patience},
                         Deadline::after(options.timeout)),
        meeting_(std::move(store)),
        layout_(lay_out(options.hosts)),
        place_(layout_.place[static_cast<size_t>(rank)]) {}
  ~Hierarchical() override { shut_down(); }
  Hierarchical(const Hierarchical&) = delete;
  Hierarchical& operator=(const Hierarchical&) = delete;

  [[nodiscard]] std::string name() const override { return "hierarchical"; }

  void connect_all(const HierarchicalOptions& options) {
    connect(options.timeout, [&](const Deadline& deadline) {
      if (size() == 1) {
        return;
      }
      std::vector<int> everybody(static_cast<size_t>(size()));
      for (int r = 0; r < size(); ++r) {
        everybody[static_cast<size_t>(r)] = r;
      }
      add(flat_, gloo(options, "flat", everybody, deadline));
      const std::vector<int>& neighbours = layout_.neighbours(rank());
      if (neighbours.size() > 1) {
        const int host = layout_.host[static_cast<size_t>(rank())];
        add(local_, shm(options, fmt::format("host/{}", host), neighbours, deadline));
      }
      if (place_ < layout_.lanes && layout_.hosts() > 1) {
        add(lane_, gloo(options, fmt::format("lane/{}", place_), layout_.lane(place_), deadline));
      }
    });
  }

 protected:
  void do_all_reduce(const TreeBuffers& buffers,
                     int64_t count,
                     DType dtype,
                     ReduceOp op,
                     const Deadline& deadline) override {
    Wide wide(buffers, /*takes=*/true, count, dtype, op);
    sum_up(wide, deals_of(buffers.deal), count, deadline);
    wide.finish();
  }

  void do_reduce(const TreeBuffers& buffers,
                 int64_t count,
                 DType dtype,
                 ReduceOp op,
                 int root,
                 const Deadline& deadline) override {
    Wide wide(buffers, rank() == root, count, dtype, op);
    sum_up(wide, deals_of(buffers.deal), count, deadline);
    wide.finish();
  }

  /// On the root's host, then along one lane, then on the other hosts.
  void do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) override {
    const int source = layout_.host[static_cast<size_t>(root)];
    const bool at_source = layout_.host[static_cast<size_t>(rank())] == source;
    const int place = layout_.place[static_cast<size_t>(root)];
    const int along = place < layout_.lanes ? place : 0;
    const auto on_host = [&](int from) {
      local_.run_step(call(), [&](Transport& t) {
        t.broadcast(data, bytes, DType::kU8, from, deadline.remaining());
      });
    };
    if (local_ && at_source) {
      on_host(place);
    }
    if (lane_ && place_ == along) {
      lane_.run_step(call(), [&](Transport& t) {
        t.broadcast(data, bytes, DType::kU8, source, deadline.remaining());
      });
    }
    if (local_ && !at_source) {
      on_host(along);
    }
  }

  void do_barrier(const Deadline& deadline) override {
    const auto meet = [&](const Part& part) {
      if (part) {
        part.run_step(call(), [&](Transport& t) { t.barrier(deadline.remaining()); });
      }
    };
    meet(local_);
    if (place_ == 0) {
      meet(lane_);
    }
    meet(local_);
  }

  /// Hosts share no memory. The ranks meet all the same: who calls something else is found here.
  std::shared_ptr<SharedBlock> do_share(size_t /*bytes*/, const Deadline& deadline) override {
    do_barrier(deadline);
    return nullptr;
  }
  void do_all_gather(const void* input,
                     void* output,
                     const Parts& parts,
                     const Deadline& deadline) override {
    flat_.run_step(call(), [&](Transport& t) {
      t.all_gather_v(input, output, parts.bytes, DType::kU8, deadline.remaining());
    });
  }
  void do_gather(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) override {
    flat_.run_step(call(), [&](Transport& t) {
      t.gather(input, output, bytes, DType::kU8, root, deadline.remaining());
    });
  }
  void do_scatter(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) override {
    flat_.run_step(call(), [&](Transport& t) {
      t.scatter(input, output, bytes, DType::kU8, root, deadline.remaining());
    });
  }
  /// Costs what an all_reduce of all parts costs: less than sending them to each rank by itself
  /// where hosts have several ranks.
  void do_reduce_scatter(const TreeBuffers& buffers,
                         int64_t count,
                         DType dtype,
                         ReduceOp op,
                         const Deadline& deadline) override {
    const int64_t bytes = count * static_cast<int64_t>(size_of(dtype));
    std::vector<std::byte> all(static_cast<size_t>(bytes * size()));
    void* const sum = all.data();
    const TreeBuffers parts{.deal = buffers.deal, .nodes = buffers.nodes, .sums = {&sum, 1}};
    do_all_reduce(parts, count * size(), dtype, op, deadline);
    copy_bytes(buffers.sums[0], at(sum, rank() * bytes), bytes);
  }
  void do_all_to_all(const void* input,
                     const Parts& sends,
                     void* output,
                     const Parts& receives,
                     const Deadline& deadline) override {
    flat_.run_step(call(), [&](Transport& t) {
      t.all_to_all_v(input, sends.bytes, output, receives.bytes, DType::kU8, deadline.remaining());
    });
  }

  [[nodiscard]] bool receives_from_any() const override { return true; }
  std::unique_ptr<Link> do_send(const void* data, size_t bytes, int peer, uint32_t tag) override {
    return flat_.run(
        [&](Transport& t) { return std::make_unique<PartLink>(t.send(data, bytes, peer, tag)); });
  }
  std::unique_ptr<Link> do_recv(void* data, size_t bytes, int peer, uint32_t tag) override {
    return flat_.run(
        [&](Transport& t) { return std::make_unique<PartLink>(t.recv(data, bytes, peer, tag)); });
  }

  void interrupt() override {
    std::vector<std::shared_ptr<Transport>> parts;  // what is added later closes itself
    {
      const std::lock_guard lock(parts_mutex_);
      interrupted_ = true;
      parts = {local_.transport(), lane_.transport(), flat_.transport()};
    }
    for (const auto& part : parts) {
      if (part != nullptr) {
        part->close();
      }
    }
  }

 private:
  class PartLink final : public Link {
   public:
    explicit PartLink(std::unique_ptr<Transfer> transfer) : transfer_(std::move(transfer)) {}
    void wait(const Deadline& deadline) override {
      Part::translated({}, [&] { transfer_->wait(deadline.remaining()); });
    }
    [[nodiscard]] int source() const override { return transfer_->source(); }

   private:
    const std::unique_ptr<Transfer> transfer_;
  };

  /// How the leaves of a deal lie on a host's ranks, and on the hosts.
  struct Deals {
    LeafDeal on_host;
    LeafDeal between_hosts;
  };

  /// Some of the elements of an all_reduce. Each lane sums up a share of them.
  struct Block {
    int64_t begin = 0;
    int64_t count = 0;
  };

  [[nodiscard]] const Deals& deals_of(const LeafDeal& deal) {
    ARGOSY_CHECK(deal.is_whole(),
                 "transport.hierarchical",
                 "the ranks hold a part of the {} leaves only, which is not supported over hosts",
                 deal.leaves());
    const auto found = deals_.find(deal.digest());
    return found != deals_.end() ? found->second
                                 : deals_.emplace(deal.digest(), divided(deal)).first->second;
  }
  [[nodiscard]] Deals divided(const LeafDeal& deal) const {
    std::vector<std::vector<TreeNode>> of_hosts;
    std::vector<LeafDeal> hosts;
    for (const std::vector<int>& members : layout_.members) {
      std::vector<std::vector<TreeNode>> of_ranks;
      for (const int member : members) {
        of_ranks.emplace_back(deal.nodes(member).begin(), deal.nodes(member).end());
      }
      hosts.emplace_back(deal.leaves(), std::move(of_ranks));
      of_hosts.emplace_back();
      for (const LeafDeal::Sum& sum : hosts.back().sums()) {
        of_hosts.back().push_back(sum.node);
      }
    }
    const auto mine = static_cast<size_t>(layout_.host[static_cast<size_t>(rank())]);
    return {std::move(hosts[mine]), LeafDeal(deal.leaves(), std::move(of_hosts))};
  }

  /// Block by block; while one is on its way between the hosts, the next is summed up on each, and
  /// the one before is spread there.
  void sum_up(const Wide& wide, const Deals& deals, int64_t count, const Deadline& deadline) {
    const int64_t most = elements_of_a_block(wide, count);
    std::optional<Block> before;
    std::future<void> on_its_way;
    std::array<HostSums, 2> sums;  // of the block that is on its way, and of the next
    size_t next = 0;
    try {
      for (int64_t begin = 0; begin < count; begin += most) {
        const Block block{.begin = begin, .count = std::min(most, count - begin)};
        HostSums& mine = sums[next];
        next = 1 - next;
        sum_on_host(wide, deals, block, deadline, mine);
        if (before) {
          on_its_way.get();
        }
        const bool beside =
            lane_ && local_ && block.count < count;  // there is something to do meanwhile
        on_its_way =
            start(beside, [&, block] { sum_between_hosts(wide, deals, block, mine, deadline); });
        if (before) {
          spread_on_host(wide, *before, deadline);
        }
        before = block;
      }
      on_its_way.get();
      spread_on_host(wide, *before, deadline);
    } catch (...) {
      if (on_its_way.valid()) {  // it uses the caller's memory
        interrupt();
        on_its_way.wait();
      }
      throw;
    }
  }

  /// All, where there is nothing to do beside what goes between the hosts. The same on all ranks.
  /// Blocks of calls with other counts have, nearly always, other sizes: so ranks whose calls
  /// differ find it out on a lane. A few pairs of counts have the same.
  [[nodiscard]] int64_t elements_of_a_block(const Wide& wide, int64_t count) const {
    const int64_t most = kBlockBytes / wide.bytes_of(1);
    if (layout_.hosts() == size() || count <= most) {
      return count;
    }
    const int64_t blocks = (count + most - 1) / most;
    return (count + blocks - 1) / blocks + 16 * blocks;
  }
  /// In a thread of its own where there is one to be had.
  template <typename Exchange>
  static std::future<void> start(bool beside, const Exchange& exchange) {
    if (beside) {
      try {
        return std::async(std::launch::async, exchange);
      } catch (const std::system_error& /*no more threads*/) {
      }
    }
    return std::async(std::launch::deferred, exchange);
  }
  /// This host's sums of a share of a block: the nodes that it brings to the sum between hosts.
  struct HostSums {
    std::vector<std::byte> memory{};
    std::vector<const void*> nodes{};
  };

  /// Sums up each lane's share on that lane's rank. A host that brings one node has it where the
  /// result will be; several need memory of their own, for a result may lie where a node lies.
  void sum_on_host(const Wide& wide,
                   const Deals& deals,
                   const Block& block,
                   const Deadline& deadline,
                   HostSums& sums) const {
    const size_t of_host = deals.on_host.sums().size();
    sums.nodes.clear();
    if (!local_) {  // a rank has added its own
      for (size_t i = 0; i < of_host; ++i) {
        sums.nodes.push_back(wide.node(i, share_begin(block, place_)));
      }
      return;
    }
    const int64_t share_bytes = wide.bytes_of(share_size(place_, block.count));
    sums.memory.resize(
        of_host > 1 && place_ < layout_.lanes ? static_cast<size_t>(share_bytes) * of_host : 0);
    std::vector<void*> room;
    for (size_t i = 0; place_ < layout_.lanes && i < of_host; ++i) {
      room.push_back(of_host == 1 ? wide.sum(share_begin(block, place_))
                                  : sums.memory.data() + static_cast<int64_t>(i) * share_bytes);
      sums.nodes.push_back(room.back());
    }
    for (int lane = 0; lane < layout_.lanes; ++lane) {
      std::vector<const void*> nodes;
      for (size_t i = 0; i < deals.on_host.nodes(place_).size(); ++i) {
        nodes.push_back(wide.node(i, share_begin(block, lane)));
      }
      local_.run_step(call(), [&](Transport& t) {
        t.reduce({.deal = deals.on_host, .nodes = nodes, .sums = room},
                 share_size(lane, block.count),
                 wide.dtype(),
                 wide.op(),
                 lane,
                 deadline.remaining());
      });
    }
  }
  void sum_between_hosts(const Wide& wide,
                         const Deals& deals,
                         const Block& block,
                         const HostSums& sums,
                         const Deadline& deadline) const {
    if (lane_) {
      void* const result = wide.sum(share_begin(block, place_));
      lane_.run_step(call(), [&](Transport& t) {
        t.all_reduce({.deal = deals.between_hosts, .nodes = sums.nodes, .sums = {&result, 1}},
                     share_size(place_, block.count),
                     wide.dtype(),
                     wide.op(),
                     deadline.remaining());
      });
    }
  }
  void spread_on_host(const Wide& wide, const Block& block, const Deadline& deadline) const {
    if (!local_) {
      return;
    }
    std::vector<int64_t> counts(layout_.neighbours(rank()).size(), 0);
    for (int lane = 0; lane < layout_.lanes; ++lane) {
      counts[static_cast<size_t>(lane)] = share_size(lane, block.count);
    }
    local_.run_step(call(), [&](Transport& t) {
      t.all_gather_v(wide.sum(share_begin(block, std::min(place_, layout_.lanes))),
                     wide.sum(block.begin),
                     counts,
                     wide.dtype(),
                     deadline.remaining());
    });
  }

  /// Lane i has the elements from share_begin(i) to share_begin(i + 1) of a block.
  [[nodiscard]] int64_t share_begin(int lane, int64_t count) const {
    const int64_t each = (count + layout_.lanes - 1) / layout_.lanes;
    return std::min(count, lane * each);
  }
  [[nodiscard]] int64_t share_begin(const Block& block, int lane) const {
    return block.begin + share_begin(lane, block.count);
  }
  [[nodiscard]] int64_t share_size(int lane, int64_t count) const {
    return share_begin(lane + 1, count) - share_begin(lane, count);
  }

  /// What a part between `members` is told: its ranks bear the numbers that they have in the job.
  template <typename Options>
  void tell(Options& part,
            const HierarchicalOptions& options,
            const std::vector<int>& members,
            const Deadline& deadline) const {
    part.group = options.group;
    part.job = options.job;
    part.job_ranks = options.job_ranks;
    part.timeout = deadline.remaining();
    part.patience = options.patience;
    for (const int member : members) {
      part.world_ranks.push_back(
          options.world_ranks.empty() ? member : options.world_ranks[static_cast<size_t>(member)]);
    }
  }
  [[nodiscard]] int place_in(const std::vector<int>& members) const {
    return static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  }
  Part gloo(const HierarchicalOptions& options,
            const std::string& name,
            const std::vector<int>& members,
            const Deadline& deadline) const {
    GlooOptions part;
    tell(part, options, members, deadline);
    return Part::translated(members, [&] {
      return Part(make_gloo(rendezvous::prefix_store(meeting_, name),
                            place_in(members),
                            static_cast<int>(members.size()),
                            part),
                  members);
    });
  }
  Part shm(const HierarchicalOptions& options,
           const std::string& name,
           const std::vector<int>& members,
           const Deadline& deadline) const {
    ShmOptions part;
    tell(part, options, members, deadline);
    return Part::translated(members, [&] {
      return Part(make_shm(rendezvous::prefix_store(meeting_, name),
                           place_in(members),
                           static_cast<int>(members.size()),
                           part),
                  members);
    });
  }
  void add(Part& place, Part part) {
    const std::lock_guard lock(parts_mutex_);
    place = std::move(part);
    if (interrupted_) {
      place.close();
    }
  }

  const std::shared_ptr<rendezvous::Store> meeting_;
  const HostLayout layout_;
  const int place_;         ///< of this rank on its host: its lane, if there is one
  std::mutex parts_mutex_;  ///< for interrupt() while the ranks still connect
  bool interrupted_ = false;
  Part local_{};                       ///< the ranks of this host; none where it has one
  Part lane_{};                        ///< the ranks of this place on all hosts
  Part flat_{};                        ///< all ranks
  std::map<uint64_t, Deals> deals_{};  ///< by the digest of the whole deal
};

}  // namespace

std::unique_ptr<Transport> make_hierarchical(std::shared_ptr<rendezvous::Store> store,
                                             int rank,
                                             int size,
                                             const HierarchicalOptions& options) {
  ARGOSY_CHECK(std::ssize(options.hosts) == size,
               "transport.hierarchical",
               "expected the host of each of {} ranks, got {}",
               size,
               options.hosts.size());
  auto transport = std::make_unique<Hierarchical>(std::move(store), rank, size, options);
  transport->connect_all(options);
  return transport;
}

}  // namespace argosy::transport
