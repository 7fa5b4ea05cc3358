#include "argosy/transport/in_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <thread>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/strings.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/transport/bytes.h"
#include "argosy/transport/in_process_hub.h"
#include "argosy/transport/reduction.h"
#include "argosy/transport/watched_transport.h"

namespace argosy::transport {
namespace {

constexpr const char* kHubKey = "in_process/hub";
constexpr size_t kInProcessPage = 4096;

class HeapBlock final : public SharedBlock {
 public:
  explicit HeapBlock(size_t bytes)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(std::aligned_alloc(kInProcessPage, rounded(bytes)))) {
    if (data_ == nullptr) {
      throw std::bad_alloc();
    }
    std::memset(data_.get(), 0, bytes);
  }
  [[nodiscard]] std::span<std::byte> bytes() const override { return {data_.get(), bytes_}; }
  void discard(size_t offset, size_t count) noexcept override {
    const size_t first = rounded(offset);
    const size_t end = (offset + count) / kInProcessPage * kInProcessPage;
    std::memset(data_.get() + first, 0, first < end ? end - first : 0);
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }  // NOLINT: of aligned_alloc
  };
  static size_t rounded(size_t bytes) {
    return (bytes + kInProcessPage - 1) / kInProcessPage * kInProcessPage;
  }

  const size_t bytes_;
  const std::unique_ptr<std::byte, Free> data_;
};

/// Elements reduced before they are copied on: they are then still in the cache.
constexpr int64_t kBlock = int64_t{16} * 1024;

class InProcess final : public WatchedTransport {
 public:
  InProcess(std::shared_ptr<rendezvous::Store> store,
            int rank,
            int size,
            const InProcessOptions& options)
      : WatchedTransport(std::move(store),
                         rank,
                         size,
                         {.transport = "in_process",
                          .group = options.group,
                          .world_ranks = options.world_ranks,
                          .job = options.job,
                          .job_ranks = options.job_ranks,
                          .patience = options.patience},
                         Deadline::after(options.timeout)) {}
  ~InProcess() override { shut_down(); }
  InProcess(const InProcess&) = delete;
  InProcess& operator=(const InProcess&) = delete;

  [[nodiscard]] std::string name() const override { return "in_process"; }

  void meet(const InProcessOptions& options) {
    connect(options.timeout, [&](const Deadline& deadline) {
      // The process id tells apart ranks that share the store but not the memory.
      if (rank() == 0) {
        set_hub(Hub::make(size(), names()));
        lobby().tell(kHubKey, fmt::format("{} {}", ::getpid(), hub_->id()), deadline);
      } else {
        const auto words = strings::split(lobby().await(kHubKey, 0, deadline), ' ');
        ARGOSY_CHECK(
            words.at(0) == fmt::format("{}", ::getpid()),
            "transport.in_process",
            "all ranks must be threads of one process: rank 0 is process {}, rank {} is {}",
            words.at(0),
            rank(),
            ::getpid());
        set_hub(Hub::find(static_cast<uint64_t>(strings::parse_int(words.at(1)).value_or(0))));
        if (hub_ == nullptr) {
          throw LinkBroken{0, "it takes no part any more"};
        }
      }
      hub_->collective(rank(), {.call = call()}, deadline, [](const auto&) {});
    });
  }

  void die() {
    rendezvous::lose(watch().take_presence());
    interrupt();
  }

 protected:
  void do_all_reduce(const TreeBuffers& buffers,
                     int64_t count,
                     DType dtype,
                     ReduceOp op,
                     const Deadline& deadline) override {
    reduce_shares(buffers, count, dtype, op, -1, deadline);
  }

  void do_reduce(const TreeBuffers& buffers,
                 int64_t count,
                 DType dtype,
                 ReduceOp op,
                 int root,
                 const Deadline& deadline) override {
    reduce_shares(buffers, count, dtype, op, root, deadline);
  }

  void do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) override {
    hub_->collective(rank(), {.call = call(), .input = data}, deadline, [&](const auto& ranks) {
      copy_bytes(data, of(ranks, root).input, bytes);
    });
  }

  void do_all_gather(const void* input,
                     void* output,
                     const Parts& parts,
                     const Deadline& deadline) override {
    hub_->collective(rank(),
                     {.call = call(), .input = input, .agreed = &parts},
                     deadline,
                     [&](const auto& ranks) {
                       for (int r = 0; r < size(); ++r) {
                         const auto i = static_cast<size_t>(r);
                         if (r != rank()) {
                           copy_bytes(
                               at(output, parts.offset[i]), of(ranks, r).input, parts.bytes[i]);
                         }
                       }
                     });
  }

  void do_gather(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) override {
    hub_->collective(rank(), {.call = call(), .input = input}, deadline, [&](const auto& ranks) {
      for (int r = 0; rank() == root && r < size(); ++r) {
        if (r != root) {
          copy_bytes(at(output, r * bytes), of(ranks, r).input, bytes);
        }
      }
    });
  }

  void do_scatter(
      const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) override {
    hub_->collective(rank(), {.call = call(), .input = input}, deadline, [&](const auto& ranks) {
      if (rank() != root) {
        copy_bytes(output, at(of(ranks, root).input, rank() * bytes), bytes);
      }
    });
  }

  void do_reduce_scatter(const TreeBuffers& buffers,
                         int64_t count,
                         DType dtype,
                         ReduceOp op,
                         const Deadline& deadline) override {
    Reduction reduction(buffers.deal, dtype, op);
    const int64_t begin = rank() * count * reduction.element_bytes();
    hub_->collective(rank(), {.call = call(), .tree = &buffers}, deadline, [&](const auto& ranks) {
      for (size_t sum = 0; sum < buffers.sums.size(); ++sum) {
        reduction.combine(sum, buffers.sums[sum], count, [&](const LeafDeal::Term& term) {
          return at(node_of(ranks, term), begin);
        });
      }
    });
  }

  void do_all_to_all(const void* input,
                     const Parts& sends,
                     void* output,
                     const Parts& receives,
                     const Deadline& deadline) override {
    std::string differ;
    hub_->collective(rank(),
                     {.call = call(), .input = input, .sends = &sends},
                     deadline,
                     [&](const auto& ranks) {
                       const auto me = static_cast<size_t>(rank());
                       for (int r = 0; r < size(); ++r) {
                         const auto i = static_cast<size_t>(r);
                         const Contribution& from = of(ranks, r);
                         if (from.sends->bytes[me] != receives.bytes[i]) {
                           differ = fmt::format("{} sends {} B, but {} expects {} B of it",
                                                names().one(r),
                                                from.sends->bytes[me],
                                                names().one(rank()),
                                                receives.bytes[i]);
                         } else if (r != rank()) {
                           copy_bytes(at(output, receives.offset[i]),
                                      at(from.input, from.sends->offset[me]),
                                      receives.bytes[i]);
                         }
                       }
                     });
    if (!differ.empty()) {
      throw Mismatch{differ};
    }
  }

  void do_barrier(const Deadline& deadline) override {
    hub_->collective(rank(), {.call = call()}, deadline, [](const auto&) {});
  }

  std::shared_ptr<SharedBlock> do_share(size_t bytes, const Deadline& deadline) override {
    std::shared_ptr<SharedBlock> block;
    if (rank() == 0) {
      block = std::make_shared<HeapBlock>(bytes);
    }
    hub_->collective(rank(), {.call = call(), .input = &block}, deadline, [&](const auto& ranks) {
      if (rank() != 0) {
        block = *static_cast<const std::shared_ptr<SharedBlock>*>(of(ranks, 0).input);
      }
    });
    return block;
  }

  std::unique_ptr<Link> do_send(const void* data, size_t bytes, int peer, uint32_t tag) override {
    auto message = std::make_shared<Message>();
    message->from = data == nullptr ? "" : data;  // null marks the receiving side
    message->bytes = bytes;
    const Hub::Key key{rank(), peer, tag};
    hub_->post_send(key, message);
    return std::make_unique<HubLink>(hub_, key, rank(), std::move(message));
  }

  std::unique_ptr<Link> do_recv(void* data, size_t bytes, int peer, uint32_t tag) override {
    auto message = std::make_shared<Message>();
    message->to = data;
    message->bytes = bytes;
    const Hub::Key key{peer, rank(), tag};
    hub_->post_recv(key, message);
    return std::make_unique<HubLink>(hub_, key, rank(), std::move(message));
  }

  void interrupt() override {
    const std::lock_guard lock(hub_mutex_);
    interrupted_ = true;
    if (hub_ != nullptr) {
      hub_->leave(rank());
    }
  }

 private:
  class HubLink final : public Link {
   public:
    HubLink(std::shared_ptr<Hub> hub, Hub::Key key, int self, std::shared_ptr<Message> message)
        : hub_(std::move(hub)), key_(key), self_(self), message_(std::move(message)) {}
    ~HubLink() override { hub_->withdraw(key_, message_); }
    HubLink(const HubLink&) = delete;
    HubLink& operator=(const HubLink&) = delete;
    void wait(const Deadline& deadline) override { hub_->await(key_, self_, message_, deadline); }

   private:
    const std::shared_ptr<Hub> hub_;
    const Hub::Key key_;
    const int self_;
    const std::shared_ptr<Message> message_;
  };

  static const Contribution& of(const std::vector<Contribution>& ranks, int rank) {
    return ranks[static_cast<size_t>(rank)];
  }

  static const void* node_of(const std::vector<Contribution>& ranks, const LeafDeal::Term& term) {
    return of(ranks, term.rank).tree->nodes[static_cast<size_t>(term.index)];
  }

  /// Each rank reduces its share of the elements, and nobody else touches that share of anybody's
  /// memory: so a result may be written over its terms, of all ranks or of the root alone.
  void reduce_shares(const TreeBuffers& buffers,
                     int64_t count,
                     DType dtype,
                     ReduceOp op,
                     int root,
                     const Deadline& deadline) {
    Reduction reduction(buffers.deal, dtype, op);
    const int64_t element = reduction.element_bytes();
    hub_->collective(rank(), {.call = call(), .tree = &buffers}, deadline, [&](const auto& ranks) {
      const int64_t share = (count + size() - 1) / size();
      const int64_t end = std::min(count, (rank() + 1) * share);
      for (int64_t begin = rank() * share; begin < end; begin += kBlock) {
        const int64_t length = std::min(kBlock, end - begin);
        for (size_t sum = 0; sum < buffers.deal.sums().size(); ++sum) {
          const auto result_of = [&](int r) {
            return at(of(ranks, r).tree->sums[sum], begin * element);
          };
          std::byte* const result = result_of(root < 0 ? rank() : root);
          reduction.combine(sum, result, length, [&](const LeafDeal::Term& term) {
            return at(node_of(ranks, term), begin * element);
          });
          for (int r = 0; root < 0 && r < size(); ++r) {
            copy_bytes(result_of(r), result, length * element);
          }
        }
      }
    });
  }

  void set_hub(std::shared_ptr<Hub> hub) {
    const std::lock_guard lock(hub_mutex_);
    hub_ = std::move(hub);
    if (interrupted_ && hub_ != nullptr) {
      hub_->leave(rank());
    }
  }

  std::mutex hub_mutex_;  ///< for interrupt() while the ranks still meet
  bool interrupted_ = false;
  std::shared_ptr<Hub> hub_;
};

}  // namespace

std::unique_ptr<Transport> make_in_process(std::shared_ptr<rendezvous::Store> store,
                                           int rank,
                                           int size,
                                           const InProcessOptions& options) {
  auto transport = std::make_unique<InProcess>(std::move(store), rank, size, options);
  transport->meet(options);
  return transport;
}

std::vector<std::unique_ptr<Transport>> in_process_transports(int size,
                                                              const InProcessOptions& options) {
  const auto store = rendezvous::in_process_store();
  std::vector<std::unique_ptr<InProcess>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<InProcess>(store, rank, size, options));
  }
  std::vector<std::thread> threads;
  for (auto& rank : ranks) {
    threads.emplace_back([&rank, &options] { rank->meet(options); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return {std::make_move_iterator(ranks.begin()), std::make_move_iterator(ranks.end())};
}

void lose(std::unique_ptr<Transport> transport) {
  auto* in_process = dynamic_cast<InProcess*>(transport.get());
  ARGOSY_CHECK(in_process != nullptr, "transport.lose", "expected an in_process transport");
  in_process->die();
}

}  // namespace argosy::transport
