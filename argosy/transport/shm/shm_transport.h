#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "argosy/transport/shm/blocks.h"
#include "argosy/transport/shm/mailbox.h"
#include "argosy/transport/shm/segment.h"
#include "argosy/transport/shm/shm.h"
#include "argosy/transport/shm/waiter.h"
#include "argosy/transport/watched_transport.h"

// Internal to the room: make_shm()'s transport. How the ranks come together is in shm.cpp, what
// only moves data in movement.cpp, what reduces it in reductions.cpp.
namespace argosy::transport {

/// What the ranks share, as long as anything of this rank uses it.
struct Neighbours {
  Neighbours(os::SharedMemory memory,
             os::UniqueFd mail,
             os::UniqueFd blocks_file,
             std::vector<os::UniqueFd> processes,
             int rank,
             int size,
             const ShmOptions& options,
             const RankNames& names);

  void pump();
  void wait_for_message(Mailbox::Expected& expected, const Deadline& deadline);
  void wait_until_sent(int peer, uint64_t place, const Deadline& deadline);

  Segment segment;
  Mailbox mailbox;
  Blocks blocks;
  Waiter waiter;
};

/// What make_shm() returns.
class Shm final : public WatchedTransport {
 public:
  Shm(std::shared_ptr<rendezvous::Store> store, int rank, int size, const ShmOptions& options);
  ~Shm() override { shut_down(); }
  Shm(const Shm&) = delete;
  Shm& operator=(const Shm&) = delete;

  [[nodiscard]] std::string name() const override { return "shm"; }

  void connect_all(const ShmOptions& options);
  /// Begun so far, by all operations.
  [[nodiscard]] uint64_t rounds() const { return rounds_; }

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

  /// The elements of a chunk that a rank sums up.
  struct Share {
    int64_t begin = 0;
    int64_t end = 0;
  };
  static constexpr int kNobody = -2;
  static constexpr int kAll = -1;

  [[nodiscard]] std::vector<os::UniqueFd> receive_all_as_host(const Deadline& deadline);
  [[nodiscard]] std::vector<os::UniqueFd> call_host(const Deadline& deadline);
  [[noreturn]] void refuse(const std::string& why);
  void set_neighbours(std::shared_ptr<Neighbours> neighbours);
  [[nodiscard]] bool has_ended(int rank);

  [[nodiscard]] const Segment& segment() const { return neighbours_->segment; }
  [[nodiscard]] Waiter& waiter() const { return neighbours_->waiter; }

  /// The first act of each operation that has a round.
  RoundHeader enter();

  // One round: begin it, fill slot(rank(), round), publish; wait for the others' slots; end it.
  void begin(uint64_t round, const Deadline& deadline);
  void publish(uint64_t round, const RoundHeader& header);
  void await(int from, uint64_t round, const Deadline& deadline);
  void check(int from, uint64_t round) const;
  void await_all(uint64_t round, bool first, const Deadline& deadline);
  void end(uint64_t round);
  [[nodiscard]] std::string difference(int from, uint64_t their_calls) const;

  /// `rounds` rounds of one operation. put(i, slot) fills this rank's slot; take(from, i, slot)
  /// reads one of `from`: a rank, kAll others or kNobody's.
  void exchange(int64_t rounds,
                int from,
                const std::function<void(int64_t, std::byte*)>& put,
                const std::function<void(int, int64_t, const std::byte*)>& take,
                const Deadline& deadline);
  void reduce_at_once(
      void* data, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline);
  [[nodiscard]] bool all_well(const Status& mine, const Deadline& deadline);
  [[nodiscard]] bool reduce_where_it_lies(const RoundHeader& header,
                                          void* data,
                                          int64_t count,
                                          DType dtype,
                                          ReduceOp op,
                                          const Deadline& deadline);
  [[nodiscard]] bool all_in_one_block(uint64_t round, int64_t bytes) const;
  void reduce_in_shares(const RoundHeader& header,
                        void* data,
                        int64_t count,
                        DType dtype,
                        ReduceOp op,
                        int root,
                        const Deadline& deadline);
  void open_chunk(uint64_t round,
                  const RoundHeader& header,
                  const std::byte* chunk,
                  int64_t length,
                  int64_t element,
                  const Deadline& deadline);
  void sum_up(uint64_t round, std::byte* chunk, int64_t length, DType dtype, ReduceOp op, int root);
  void take_shares(
      uint64_t round, std::byte* chunk, int64_t length, int64_t element, const Deadline& deadline);
  [[nodiscard]] Share share_of(int rank, int64_t length, int64_t element) const;
  [[nodiscard]] int64_t piece_bytes(int64_t element) const;

  const ShmOptions options_;
  std::mutex neighbours_mutex_;  ///< for interrupt() while the ranks still connect
  bool interrupted_ = false;
  std::shared_ptr<Neighbours> neighbours_;
  uint64_t rounds_ = 0;   ///< begun, of all operations
  uint64_t calls_ = 0;    ///< that had a round
  uint64_t history_ = 0;  ///< a digest of them
};

}  // namespace argosy::transport
