#include "argosy/transport/watched_transport.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/transport/bytes.h"
#include "argosy/transport/reduction.h"

namespace argosy::transport {
namespace {

int64_t size_in_bytes(int64_t count, DType dtype) {
  return count * static_cast<int64_t>(size_of(dtype));
}

void check_count(const char* op, int64_t count) {
  ARGOSY_CHECK(
      count >= 0, std::string("transport.") + op, "count must not be negative, got {}", count);
}

void check_counts(const char* op, const char* what, Counts counts, int size) {
  ARGOSY_CHECK(counts.size() == static_cast<size_t>(size),
               std::string("transport.") + op,
               "{} must have one entry per rank: expected {}, got {}",
               what,
               size,
               counts.size());
  for (const int64_t count : counts) {
    check_count(op, count);
  }
}

void check_reduction(const char* op, ReduceOp reduce_op, DType dtype) {
  ARGOSY_CHECK(is_defined(reduce_op, dtype),
               std::string("transport.") + op,
               "{} is not defined for {}",
               to_string(reduce_op),
               to_string(dtype));
}

}  // namespace

Parts Parts::equal(int n, int64_t bytes) {
  Parts parts;
  for (int i = 0; i < n; ++i) {
    parts.offset.push_back(i * bytes);
    parts.bytes.push_back(bytes);
  }
  return parts;
}

Parts Parts::of(Counts counts, int64_t element_bytes) {
  Parts parts;
  int64_t offset = 0;
  for (const int64_t count : counts) {
    parts.offset.push_back(offset);
    parts.bytes.push_back(count * element_bytes);
    offset += count * element_bytes;
  }
  return parts;
}

WatchedTransport::WatchedTransport(std::shared_ptr<rendezvous::Store> store,
                                   int rank,
                                   int size,
                                   PeerWatchOptions options,
                                   const Deadline& deadline)
    : store_(std::move(store)),
      rank_(rank),
      size_(size),
      names_(options.world_ranks),
      one_each_(LeafDeal::one_each(size)) {
  ARGOSY_CHECK(size > 0 && rank >= 0 && rank < size,
               "transport." + options.transport,
               "rank {} does not fit a group of {}",
               rank,
               size);
  options.interrupt = [this] { interrupt(); };
  watch_ = std::make_unique<PeerWatch>(store_, rank, size, std::move(options), deadline);
}

std::exception_ptr WatchedTransport::verdict_on(const Attempt& what,
                                                const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const LinkBroken& broken) {
    return watch_->link_broken(what, broken);
  } catch (const OwnFault& fault) {
    return watch_->failed_here(what, fault);
  } catch (const LinkTimeout& late) {
    return watch_->timed_out(what, late);
  } catch (const Mismatch& mismatch) {
    return watch_->mismatched(what, mismatch);
  } catch (...) {  // no fault of a link
    return error;
  }
}

/// Called where an exception was caught. Throws what the caller of the operation sees when a link
/// of this transport failed; returns when the exception is another one.
void WatchedTransport::blame(const Attempt& what) {
  const std::exception_ptr error = std::current_exception();
  if (std::exception_ptr verdict = verdict_on(what, error); verdict != error) {
    give_up(std::move(verdict));
  }
}

/// The order matters. This rank has declared itself a victim in the watch before its links close,
/// so a rank that then loses a link to it looks further.
void WatchedTransport::give_up(std::exception_ptr cause) {
  interrupt();
  std::rethrow_exception(std::move(cause));
}

/// Makes `call` the collective that runs, with its number and place.
void WatchedTransport::number(const Call& call) {
  watch_->check(name_of(call.op));
  call_ = whole_ ? step_of(*whole_, call) : call;
  if (!whole_) {
    call_.place = place_;
  }
  const int64_t number = next_++;
  if (call_.seq < 0) {
    call_.seq = number;
  }
  history_ = mixed(history_, digest(call_));
}

void WatchedTransport::do_copy(void* to, const void* from, int64_t bytes) {
  copy_bytes(to, from, bytes);
}

void WatchedTransport::do_reduce_alone(const TreeBuffers& buffers,
                                       int64_t count,
                                       DType dtype,
                                       ReduceOp op) {
  reduce_alone(buffers, count, dtype, op);
}

void WatchedTransport::issue(const Call& /*call*/,
                             Timeout /*timeout*/,
                             const std::function<void()>& body) {
  body();
}

std::shared_ptr<SharedBlock> WatchedTransport::share(size_t bytes, Timeout timeout) {
  std::shared_ptr<SharedBlock> block;
  if (size_ > 1 && bytes > 0 && queue() == nullptr) {
    const Call share{.op = Op::kShare, .bytes = static_cast<int64_t>(bytes)};
    run(share, timeout, [&](const Deadline& deadline) { block = do_share(bytes, deadline); });
  }
  return block;
}

void WatchedTransport::close() {
  watch_->leave();
  disconnect();
}

void WatchedTransport::shut_down() {
  if (watch_ != nullptr) {
    watch_->leave();
    disconnect();
    watch_.reset();  // joins the thread that may call interrupt()
  }
}

void WatchedTransport::check_rank(const char* op, const char* what, int value) const {
  ARGOSY_CHECK(value >= 0 && value < size_,
               std::string("transport.") + op,
               "{} must be a rank of this group, 0 to {}, got {}",
               what,
               size_ - 1,
               value);
}

void WatchedTransport::check_tree(const char* op,
                                  const TreeBuffers& buffers,
                                  bool takes,
                                  ReduceOp reduction) const {
  ARGOSY_CHECK(buffers.deal.ranks() == size_,
               std::string("transport.") + op,
               "the leaves are dealt to {} ranks, and the group has {}",
               buffers.deal.ranks(),
               size_);
  ARGOSY_CHECK(buffers.nodes.size() == buffers.deal.nodes(rank_).size(),
               std::string("transport.") + op,
               "rank {} brings {} nodes, got the data of {}",
               rank_,
               buffers.deal.nodes(rank_).size(),
               buffers.nodes.size());
  ARGOSY_CHECK(!takes || buffers.sums.size() == buffers.deal.sums().size(),
               std::string("transport.") + op,
               "{} sums come out, got room for {}",
               buffers.deal.sums().size(),
               buffers.sums.size());
  ARGOSY_CHECK(reduction != ReduceOp::kAvg || buffers.deal.is_whole(),
               std::string("transport.") + op,
               "an average is of all leaves, and the ranks hold a part of {} leaves",
               buffers.deal.leaves());
}

/// Runs a reduction of several ranks, or the sum of one rank's leaves.
template <typename Body>
void WatchedTransport::run_sum(
    Call call, const TreeBuffers& buffers, int64_t count, Timeout timeout, Body body) {
  const char* const op = name_of(call.op);
  check_count(op, count);
  check_reduction(op, call.reduction, call.dtype);
  check_tree(op, buffers, call.root < 0 || call.root == rank_, call.reduction);
  call.bytes = size_in_bytes(count, call.dtype);
  call.parts = buffers.deal.digest();
  call.exact = sums_exactly();
  run(call, timeout, [&](const Deadline& deadline) {
    if (size_ == 1) {
      do_reduce_alone(buffers, count, call.dtype, call.reduction);
    } else if (count > 0) {
      body(deadline);
    }
  });
}

void WatchedTransport::all_reduce(
    void* data, int64_t count, DType dtype, ReduceOp op, Timeout timeout) {
  const void* const node = data;
  all_reduce(
      {.deal = one_each_, .nodes = {&node, 1}, .sums = {&data, 1}}, count, dtype, op, timeout);
}

void WatchedTransport::all_reduce(
    const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op, Timeout timeout) {
  const Call call{.op = Op::kAllReduce, .dtype = dtype, .reduction = op};
  run_sum(call, buffers, count, timeout, [&](const Deadline& deadline) {
    do_all_reduce(buffers, count, dtype, op, deadline);
  });
}

void WatchedTransport::reduce(
    void* data, int64_t count, DType dtype, ReduceOp op, int root, Timeout timeout) {
  const void* const node = data;
  reduce({.deal = one_each_, .nodes = {&node, 1}, .sums = {&data, 1}},
         count,
         dtype,
         op,
         root,
         timeout);
}

void WatchedTransport::reduce(const TreeBuffers& buffers,
                              int64_t count,
                              DType dtype,
                              ReduceOp op,
                              int root,
                              Timeout timeout) {
  check_rank("reduce", "root", root);
  const Call call{.op = Op::kReduce, .dtype = dtype, .reduction = op, .root = root};
  run_sum(call, buffers, count, timeout, [&](const Deadline& deadline) {
    do_reduce(buffers, count, dtype, op, root, deadline);
  });
}

void WatchedTransport::broadcast(
    void* data, int64_t count, DType dtype, int root, Timeout timeout) {
  check_count("broadcast", count);
  check_rank("broadcast", "root", root);
  const int64_t bytes = size_in_bytes(count, dtype);
  const Call call{.op = Op::kBroadcast, .dtype = dtype, .root = root, .bytes = bytes};
  run(call, timeout, [&](const Deadline& deadline) {
    if (size_ > 1 && count > 0) {
      do_broadcast(data, bytes, root, deadline);
    }
  });
}

void WatchedTransport::all_gather(
    const void* input, void* output, int64_t count, DType dtype, Timeout timeout) {
  check_count("all_gather", count);
  const int64_t bytes = size_in_bytes(count, dtype);
  const Call call{.op = Op::kAllGather, .dtype = dtype, .bytes = bytes * size_};
  run(call, timeout, [&](const Deadline& deadline) {
    do_copy(static_cast<std::byte*>(output) + rank_ * bytes, input, bytes);
    if (size_ > 1 && count > 0) {
      do_all_gather(input, output, Parts::equal(size_, bytes), deadline);
    }
  });
}

void WatchedTransport::all_gather_v(
    const void* input, void* output, Counts counts, DType dtype, Timeout timeout) {
  check_counts("all_gather_v", "counts", counts, size_);
  const Parts parts = Parts::of(counts, static_cast<int64_t>(size_of(dtype)));
  Call call{
      .op = Op::kAllGatherV, .dtype = dtype, .bytes = parts.offset.back() + parts.bytes.back()};
  for (const int64_t part : parts.bytes) {
    call.parts = mixed(call.parts, static_cast<uint64_t>(part));
  }
  run(call, timeout, [&](const Deadline& deadline) {
    const auto mine = static_cast<size_t>(rank_);
    do_copy(static_cast<std::byte*>(output) + parts.offset[mine], input, parts.bytes[mine]);
    if (size_ > 1) {
      do_all_gather(input, output, parts, deadline);
    }
  });
}

void WatchedTransport::gather(
    const void* input, void* output, int64_t count, DType dtype, int root, Timeout timeout) {
  check_count("gather", count);
  check_rank("gather", "root", root);
  const int64_t bytes = size_in_bytes(count, dtype);
  const Call call{.op = Op::kGather, .dtype = dtype, .root = root, .bytes = bytes};
  run(call, timeout, [&](const Deadline& deadline) {
    if (rank_ == root) {
      do_copy(static_cast<std::byte*>(output) + rank_ * bytes, input, bytes);
    }
    if (size_ > 1 && count > 0) {
      do_gather(input, output, bytes, root, deadline);
    }
  });
}

void WatchedTransport::scatter(
    const void* input, void* output, int64_t count, DType dtype, int root, Timeout timeout) {
  check_count("scatter", count);
  check_rank("scatter", "root", root);
  const int64_t bytes = size_in_bytes(count, dtype);
  const Call call{.op = Op::kScatter, .dtype = dtype, .root = root, .bytes = bytes};
  run(call, timeout, [&](const Deadline& deadline) {
    if (size_ > 1 && count > 0) {
      do_scatter(input, output, bytes, root, deadline);
    }
    if (rank_ == root) {
      do_copy(output, static_cast<const std::byte*>(input) + rank_ * bytes, bytes);
    }
  });
}

void WatchedTransport::reduce_scatter(
    const void* input, void* output, int64_t count, DType dtype, ReduceOp op, Timeout timeout) {
  reduce_scatter(
      {.deal = one_each_, .nodes = {&input, 1}, .sums = {&output, 1}}, count, dtype, op, timeout);
}

void WatchedTransport::reduce_scatter(
    const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op, Timeout timeout) {
  const Call call{.op = Op::kReduceScatter, .dtype = dtype, .reduction = op};
  run_sum(call, buffers, count, timeout, [&](const Deadline& deadline) {
    do_reduce_scatter(buffers, count, dtype, op, deadline);
  });
}

void WatchedTransport::all_to_all(
    const void* input, void* output, int64_t count, DType dtype, Timeout timeout) {
  check_count("all_to_all", count);
  const int64_t bytes = size_in_bytes(count, dtype);
  const Call call{.op = Op::kAllToAll, .dtype = dtype, .bytes = bytes * size_};
  run(call, timeout, [&](const Deadline& deadline) {
    const Parts parts = Parts::equal(size_, bytes);
    do_copy(static_cast<std::byte*>(output) + rank_ * bytes,
            static_cast<const std::byte*>(input) + rank_ * bytes,
            bytes);
    if (size_ > 1 && count > 0) {
      do_all_to_all(input, parts, output, parts, deadline);
    }
  });
}

void WatchedTransport::all_to_all_v(const void* input,
                                    Counts send_counts,
                                    void* output,
                                    Counts recv_counts,
                                    DType dtype,
                                    Timeout timeout) {
  check_counts("all_to_all_v", "send_counts", send_counts, size_);
  check_counts("all_to_all_v", "recv_counts", recv_counts, size_);
  const auto mine = static_cast<size_t>(rank_);
  ARGOSY_CHECK(send_counts[mine] == recv_counts[mine],
               "transport.all_to_all_v",
               "what rank {} sends to itself must be what it receives: got {} and {}",
               rank_,
               send_counts[mine],
               recv_counts[mine]);
  run({.op = Op::kAllToAllV, .dtype = dtype}, timeout, [&](const Deadline& deadline) {
    const auto element_bytes = static_cast<int64_t>(size_of(dtype));
    const Parts sends = Parts::of(send_counts, element_bytes);
    const Parts receives = Parts::of(recv_counts, element_bytes);
    do_copy(static_cast<std::byte*>(output) + receives.offset[mine],
            static_cast<const std::byte*>(input) + sends.offset[mine],
            sends.bytes[mine]);
    if (size_ > 1) {
      do_all_to_all(input, sends, output, receives, deadline);
    }
  });
}

void WatchedTransport::barrier(Timeout timeout) {
  run({.op = Op::kBarrier}, timeout, [&](const Deadline& deadline) {
    if (size_ > 1) {
      do_barrier(deadline);
    }
  });
}

/// A point-to-point operation: not numbered, and its partner is the one to blame.
class WatchedTransport::WatchedTransfer final : public Transfer {
 public:
  WatchedTransfer(WatchedTransport& transport, const char* op, int peer, std::unique_ptr<Link> link)
      : transport_(transport), op_(op), peer_(peer), link_(std::move(link)) {}

  void wait(Timeout timeout) override {
    (void)use(timeout, [this](Link& link, const Deadline& deadline) {
      link.wait(deadline);
      source_ = link.source();
      return nullptr;
    });
    link_.reset();  // the memory is the caller's again
  }
  [[nodiscard]] int source() const override { return source_; }
  [[nodiscard]] std::shared_ptr<DeviceMark> queue(Timeout timeout) override {
    return use(timeout, [](Link& link, const Deadline& deadline) { return link.queue(deadline); });
  }

 private:
  /// The link is destroyed when it fails: the memory is then the caller's again.
  template <typename Function>
  std::shared_ptr<DeviceMark> use(Timeout timeout, Function function) {
    if (error_ != nullptr) {
      std::rethrow_exception(error_);
    }
    if (link_ == nullptr) {
      return nullptr;
    }
    try {
      const Watched watched(*transport_.watch_);
      try {
        return function(*link_, Deadline::after(timeout));
      } catch (...) {
        transport_.blame({.op = op_, .timeout = timeout, .peer = peer_});
        throw;
      }
    } catch (...) {
      error_ = std::current_exception();
      link_.reset();
      throw;
    }
  }

  struct Watched {
    explicit Watched(PeerWatch& w) : watch(w), message(watch.begin_message()) {}
    ~Watched() { watch.end_message(message); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    PeerWatch& watch;
    const PeerWatch::Message message;
  };

  WatchedTransport& transport_;
  const char* op_;
  const int peer_;
  int source_ = -1;
  std::unique_ptr<Link> link_;
  std::exception_ptr error_;  // of the wait that failed
};

std::unique_ptr<Transfer> WatchedTransport::send(const void* data,
                                                 size_t bytes,
                                                 int peer,
                                                 uint32_t tag) {
  check_rank("send", "peer", peer);
  ARGOSY_CHECK(peer != rank_, "transport.send", "rank {} cannot send to itself", rank_);
  watch_->check("send");
  try {
    return std::make_unique<WatchedTransfer>(*this, "send", peer, do_send(data, bytes, peer, tag));
  } catch (...) {
    blame({.op = "send", .peer = peer});
    throw;
  }
}

std::unique_ptr<Transfer> WatchedTransport::recv(void* data, size_t bytes, int peer, uint32_t tag) {
  if (peer == kAnyRank) {
    ARGOSY_CHECK(receives_from_any() && size_ > 1,
                 "transport.recv",
                 "{} with {} rank(s) cannot receive from any rank: name the one that sends",
                 name(),
                 size_);
  } else {
    check_rank("recv", "peer", peer);
  }
  ARGOSY_CHECK(peer != rank_, "transport.recv", "rank {} cannot receive from itself", rank_);
  watch_->check("recv");
  try {
    return std::make_unique<WatchedTransfer>(*this, "recv", peer, do_recv(data, bytes, peer, tag));
  } catch (...) {
    blame({.op = "recv", .peer = peer});
    throw;
  }
}

}  // namespace argosy::transport
