#include "argosy/transport/nccl/nccl_transport.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/os/addresses.h"
#include "argosy/transport/bytes.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/nccl/own_fault.h"

namespace argosy::transport::nccl {
namespace {

using std::chrono::microseconds;

/// Between two looks at the device: at first, and at most.
constexpr microseconds kFirstLook{50};
constexpr microseconds kLastLook{1000};
/// A call that queues a collective and lasts longer than this waits for other ranks.
constexpr std::chrono::milliseconds kLongCall{100};
/// How long the end of a group may take in which nothing failed.
constexpr std::chrono::milliseconds kFarewell = std::chrono::seconds(5);

std::optional<DataType> type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return DataType::kFloat32;
    case DType::kF64:
      return DataType::kFloat64;
    case DType::kF16:
      return DataType::kFloat16;
    case DType::kBf16:
      return DataType::kBfloat16;
    case DType::kI8:
      return DataType::kInt8;
    case DType::kU8:
      return DataType::kUint8;
    case DType::kI32:
      return DataType::kInt32;
    case DType::kI64:
      return DataType::kInt64;
    case DType::kBool:
      return std::nullopt;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBf16;
}

/// What NCCL computes as types.h says. Its minima and maxima may lose a NaN, and its averages of
/// integers may wrap.
std::optional<RedOp> operation_of(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::kSum:
      return RedOp::kSum;
    case ReduceOp::kProduct:
      return RedOp::kProd;
    case ReduceOp::kAvg:
      return is_floating(dtype) ? std::optional(RedOp::kAvg) : std::nullopt;
    case ReduceOp::kMin:
      return is_floating(dtype) ? std::nullopt : std::optional(RedOp::kMin);
    case ReduceOp::kMax:
      return is_floating(dtype) ? std::nullopt : std::optional(RedOp::kMax);
    default:
      return std::nullopt;
  }
}

Attempt attempt_of(const Call& call, Timeout timeout) {
  return {.op = name_of(call.op), .seq = call.seq, .timeout = timeout};
}

void throw_if_left(std::optional<int> leaver) {
  if (leaver) {
    throw LinkBroken{*leaver, "it left the group"};
  }
}

std::vector<int> everyone(int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

NcclTransport::NcclTransport(std::shared_ptr<rendezvous::Store> store,
                             int rank,
                             int size,
                             const NcclOptions& options)
    : WatchedTransport(std::move(store),
                       rank,
                       size,
                       {.transport = "nccl",
                        .group = options.group,
                        .world_ranks = options.world_ranks,
                        .job = options.job,
                        .job_ranks = options.job_ranks,
                        .patience = options.patience},
                       Deadline::after(options.timeout)),
      queues_(options.queues),
      mode_(options.mode),
      suspicion_(options.suspicion),
      queue_(queues_ != nullptr ? queues_->make() : nullptr) {
  if (queue_ != nullptr) {
    thread_ = std::thread([this] { follow_device(); });
  }
}

NcclTransport::~NcclTransport() {
  close();  // ends what is queued
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  std::unique_ptr<Lanes> lanes;
  {
    const std::lock_guard lock(mutex_);
    lanes = std::move(lanes_);
  }
  lanes.reset();  // their threads use the watch
  shut_down();
}

void NcclTransport::connect_all(const NcclOptions& options) {
  connect(options.timeout, [&](const Deadline& deadline) {
    if (size() == 1) {
      if (!options.refusal.empty()) {
        throw ConfigError("transport.nccl", options.refusal);
      }
      return;
    }
    library_ = agree_on_library(options, deadline);
    const auto inside = queue_->enter();
    auto communicator = std::make_unique<Communicator>(library_);
    auto lanes = std::make_unique<Lanes>(library_, *queues_, lobby(), rank(), options.timeout);
    {
      const std::lock_guard lock(mutex_);
      communicator_ = std::move(communicator);
      lanes_ = std::move(lanes);
    }
    throw_if_interrupted();
    if (rank() == 0 && options.tell) {
      options.tell(library_->description(), library_->missing());
    }
    communicator_->connect(lobby(),
                           {.key = "nccl",
                            .rank = rank(),
                            .size = size(),
                            .members = everyone(size()),
                            .enter = [this] { return queue_->enter(); }},
                           deadline);
  });
}

/// All ranks learn what each of them has. So either all have a library and a device that it can
/// use, or all throw, and a rank that does not come is named before the library waits for it.
std::shared_ptr<const Library> NcclTransport::agree_on_library(const NcclOptions& options,
                                                               const Deadline& deadline) {
  static constexpr std::string_view kHas = "has ";
  std::shared_ptr<const Library> library;
  std::string mine;
  try {
    if (!options.refusal.empty()) {
      throw ConfigError("transport.nccl", options.refusal);
    }
    library = Library::load(options.library);
    mine = fmt::format("{}{} and mode {}",
                       kHas,
                       version_text(library->version()),
                       is_native_wanted() ? "native" : "exact");
  } catch (const ConfigError& error) {
    mine = error.what();
  }
  const auto key = [](int rank) { return fmt::format("nccl/library/{}", rank); };
  lobby().tell(key(rank()), mine, deadline);
  for (int other = 0; other < size(); ++other) {
    const std::string theirs = other == rank() ? mine : lobby().await(key(other), other, deadline);
    if (!theirs.starts_with(kHas)) {
      throw ConfigError("transport.nccl", fmt::format("{}: {}", names().one(other), theirs));
    }
    if (!mine.starts_with(kHas)) {
      continue;  // a later rank, this one, is named by all
    }
    if (theirs != mine) {
      throw Mismatch{fmt::format("{} has NCCL {}, {} has {}: all ranks need the same",
                                 names().one(other),
                                 theirs.substr(kHas.size()),
                                 names().one(rank()),
                                 mine.substr(kHas.size()))};
    }
  }
  check_devices(deadline);
  return library;
}

/// The library refuses two ranks on one device, but only while it connects: too late for a group
/// that could do without it. Hosts are what it takes for hosts: so tests with a card alone can give
/// each rank a NCCL_HOSTID of its own.
void NcclTransport::check_devices(const Deadline& deadline) {
  const std::string address = queues_->address();
  const std::string host = env::get("NCCL_HOSTID").value_or(os::boot_id());
  const std::string mine = address.empty() ? "" : host + " " + address;
  const auto key = [](int rank) { return fmt::format("nccl/device/{}", rank); };
  lobby().tell(key(rank()), mine, deadline);
  std::map<std::string, int> rank_of;
  for (int other = 0; other < size(); ++other) {
    const std::string theirs = other == rank() ? mine : lobby().await(key(other), other, deadline);
    const auto [known, is_new] = rank_of.try_emplace(theirs, other);
    if (!theirs.empty() && !is_new) {
      throw ConfigError(
          "transport.nccl",
          fmt::format("{} and {} are on one device of their host, {}, and NCCL takes one rank for "
                      "each. Start as many ranks as devices.",
                      names().one(known->second),
                      names().one(other),
                      theirs.substr(theirs.rfind(' ') + 1)));
    }
  }
}

ExactReduction NcclTransport::exact(const Deadline& deadline) {
  return {*library_, *communicator_, *queue_, rank(), deadline};
}

bool NcclTransport::is_native_wanted() const {
  return !mode_ || mode_() == NcclMode::kNative;
}

bool NcclTransport::is_native(const LeafDeal& deal, DType dtype, ReduceOp op) const {
  return !call().exact && type_of(dtype) && operation_of(op, dtype) &&
         deal.digest() == one_each().digest();
}

void NcclTransport::do_all_reduce(
    const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) {
  if (!is_native(buffers.deal, dtype, op)) {
    exact(deadline).all_reduce(buffers, count, dtype, op);
    return;
  }
  communicator_->queue("ncclAllReduce", deadline, [&](Comm comm) {
    return library_->api().all_reduce(buffers.nodes[0],
                                      buffers.sums[0],
                                      static_cast<size_t>(count),
                                      *type_of(dtype),
                                      *operation_of(op, dtype),
                                      comm,
                                      queue_->handle());
  });
}

void NcclTransport::do_reduce(const TreeBuffers& buffers,
                              int64_t count,
                              DType dtype,
                              ReduceOp op,
                              int root,
                              const Deadline& deadline) {
  if (!is_native(buffers.deal, dtype, op)) {
    exact(deadline).reduce(buffers, count, dtype, op, root);
    return;
  }
  communicator_->queue("ncclReduce", deadline, [&](Comm comm) {
    return library_->api().reduce(buffers.nodes[0],
                                  rank() == root ? buffers.sums[0] : nullptr,
                                  static_cast<size_t>(count),
                                  *type_of(dtype),
                                  *operation_of(op, dtype),
                                  root,
                                  comm,
                                  queue_->handle());
  });
}

void NcclTransport::do_reduce_scatter(
    const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op, const Deadline& deadline) {
  if (!is_native(buffers.deal, dtype, op)) {
    exact(deadline).reduce_scatter(buffers, count, dtype, op);
    return;
  }
  communicator_->queue("ncclReduceScatter", deadline, [&](Comm comm) {
    return library_->api().reduce_scatter(buffers.nodes[0],
                                          buffers.sums[0],
                                          static_cast<size_t>(count),
                                          *type_of(dtype),
                                          *operation_of(op, dtype),
                                          comm,
                                          queue_->handle());
  });
}

/// `to_send(peer)` and `to_receive(peer)`: memory and bytes, which may be none.
template <typename ToSend, typename ToReceive>
void NcclTransport::exchange(ToSend to_send, ToReceive to_receive, const Deadline& deadline) {
  const Api& api = library_->api();
  communicator_->queue_group("ncclSend and ncclRecv", deadline, [&](const auto& take, Comm comm) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) {
        continue;
      }
      if (const auto [data, bytes] = to_send(peer); bytes > 0) {
        take(api.send(
            data, static_cast<size_t>(bytes), DataType::kInt8, peer, comm, queue_->handle()));
      }
      if (const auto [data, bytes] = to_receive(peer); bytes > 0) {
        take(api.recv(
            data, static_cast<size_t>(bytes), DataType::kInt8, peer, comm, queue_->handle()));
      }
    }
  });
}

void NcclTransport::do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) {
  communicator_->queue("ncclBroadcast", deadline, [&](Comm comm) {
    return library_->api().broadcast(
        data, data, static_cast<size_t>(bytes), DataType::kInt8, root, comm, queue_->handle());
  });
}

void NcclTransport::do_all_gather(const void* input,
                                  void* output,
                                  const Parts& parts,
                                  const Deadline& deadline) {
  const auto mine = static_cast<size_t>(rank());
  const auto differs = [&](int64_t bytes) { return bytes != parts.bytes.front(); };
  if (std::ranges::any_of(parts.bytes, differs)) {
    exchange(
        [&](int) {
          return std::pair<const void*, int64_t>{input, parts.bytes[mine]};
        },
        [&](int peer) {
          const auto i = static_cast<size_t>(peer);
          return std::pair<void*, int64_t>{at(output, parts.offset[i]), parts.bytes[i]};
        },
        deadline);
    return;
  }
  // In place: the own part lies there already, and where the input lies nobody needs to look.
  communicator_->queue("ncclAllGather", deadline, [&](Comm comm) {
    return library_->api().all_gather(at(output, parts.offset[mine]),
                                      output,
                                      static_cast<size_t>(parts.bytes[mine]),
                                      DataType::kInt8,
                                      comm,
                                      queue_->handle());
  });
}

void NcclTransport::do_gather(
    const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) {
  exchange(
      [&](int peer) {
        return std::pair<const void*, int64_t>{input, peer == root ? bytes : 0};
      },
      [&](int peer) {
        return rank() == root ? std::pair<void*, int64_t>{at(output, peer * bytes), bytes}
                              : std::pair<void*, int64_t>{nullptr, 0};
      },
      deadline);
}

void NcclTransport::do_scatter(
    const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) {
  exchange(
      [&](int peer) {
        return rank() == root ? std::pair<const void*, int64_t>{at(input, peer * bytes), bytes}
                              : std::pair<const void*, int64_t>{nullptr, 0};
      },
      [&](int peer) {
        return std::pair<void*, int64_t>{output, peer == root ? bytes : 0};
      },
      deadline);
}

void NcclTransport::do_all_to_all(const void* input,
                                  const Parts& sends,
                                  void* output,
                                  const Parts& receives,
                                  const Deadline& deadline) {
  exchange(
      [&](int peer) {
        const auto i = static_cast<size_t>(peer);
        return std::pair<const void*, int64_t>{at(input, sends.offset[i]), sends.bytes[i]};
      },
      [&](int peer) {
        const auto i = static_cast<size_t>(peer);
        return std::pair<void*, int64_t>{at(output, receives.offset[i]), receives.bytes[i]};
      },
      deadline);
}

void NcclTransport::do_barrier(const Deadline& deadline) {
  const std::shared_ptr<void> one = queue_->allocate(1);
  communicator_->queue("ncclAllReduce", deadline, [&](Comm comm) {
    return library_->api().all_reduce(
        one.get(), one.get(), 1, DataType::kUint8, RedOp::kMax, comm, queue_->handle());
  });
}

void NcclTransport::do_copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) {
    queue_->copy(to, from, bytes);
  }
}

void NcclTransport::do_reduce_alone(const TreeBuffers& buffers,
                                    int64_t count,
                                    DType dtype,
                                    ReduceOp op) {
  for (size_t sum = 0; sum < buffers.sums.size() && count > 0; ++sum) {
    queue_sum(
        *queue_,
        buffers.deal,
        sum,
        buffers.sums[sum],
        count,
        dtype,
        op,
        [&](const LeafDeal::Term& term) { return buffers.nodes[static_cast<size_t>(term.index)]; });
  }
}

/// A message in a lane.
class NcclTransport::LaneLink final : public Link {
 public:
  LaneLink(NcclTransport& transport, std::shared_ptr<Lane> lane, void* data, size_t bytes, int peer)
      : transport_(transport),
        lane_(std::move(lane)),
        message_(lane_->start(data, static_cast<int64_t>(bytes))),
        peer_(peer) {}

  void wait(const Deadline& deadline) override {
    const std::shared_ptr<DeviceMark> done = queue(deadline);
    const auto inside = transport_.enter_if_possible();
    try {
      transport_.await(
          *done, deadline, [&] { lane_->check(); }, [&] { return leaver(); });
    } catch (const LinkTimeout&) {
      throw LinkTimeout{{peer_}};
    }
  }
  std::shared_ptr<DeviceMark> queue(const Deadline& deadline) override {
    return lane_->wait_until_queued(*message_, deadline);
  }

 private:
  /// The peer, if it has left although this rank was ready the last time too. One that left earlier
  /// may have done its part.
  std::optional<int> leaver() {
    const bool is_ready = or_own_fault([this] { return message_->ready->has_passed(); });
    const bool was_ready = std::exchange(ready_, is_ready);
    return was_ready ? transport_.watch().who_left(0, peer_) : std::nullopt;
  }

  NcclTransport& transport_;
  const std::shared_ptr<Lane> lane_;
  const std::shared_ptr<Message> message_;
  const int peer_;
  bool ready_ = false;
};

std::unique_ptr<WatchedTransport::Link> NcclTransport::start(
    void* data, size_t bytes, int peer, uint32_t tag, bool sends) {
  ARGOSY_CHECK(tag == 0,
               sends ? "transport.send" : "transport.recv",
               "NCCL's messages have no tags: expected 0, got {}",
               tag);
  return or_own_fault([&] {
    return std::make_unique<LaneLink>(*this, lanes_->with(peer, sends), data, bytes, peer);
  });
}

std::unique_ptr<WatchedTransport::Link> NcclTransport::do_send(const void* data,
                                                               size_t bytes,
                                                               int peer,
                                                               uint32_t tag) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a lane knows that it only reads
  return start(const_cast<void*>(data), bytes, peer, tag, true);
}

std::unique_ptr<WatchedTransport::Link> NcclTransport::do_recv(void* data,
                                                               size_t bytes,
                                                               int peer,
                                                               uint32_t tag) {
  return start(data, bytes, peer, tag, false);
}

void NcclTransport::issue(const Call& call, Timeout timeout, const std::function<void()>& body) {
  const std::shared_ptr<CollectiveListener> listener = std::exchange(listener_, nullptr);
  Queued* queued = nullptr;  // stays where it is, at least until its stage changes
  {
    const std::lock_guard lock(mutex_);
    queued = &queued_.emplace_back(Queued{.call = call, .timeout = timeout});
  }
  changed_.notify_all();
  std::shared_ptr<DeviceMark> begin, end;
  std::exception_ptr refused;
  try {
    or_own_fault([&] {
      const auto inside = queue_->enter();
      queue_->follow(*queue_->mark_of_caller());
      begin = queue_->mark();
      body();
      end = queue_->mark();
    });
    if (listener != nullptr) {
      listener->accepted();
    }
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    refused = verdict_on(attempt_of(call, timeout), error);
    if (refused != error) {
      interrupt();
    }
  }
  {
    const std::lock_guard lock(mutex_);
    queued->begin = std::move(begin);
    queued->end = std::move(end);
    queued->listener = refused == nullptr ? listener : nullptr;
    queued->stage = refused == nullptr ? Stage::kQueued : Stage::kRefused;
  }
  changed_.notify_all();
  if (refused != nullptr) {
    std::rethrow_exception(refused);
  }
}

void NcclTransport::follow_device() {
  pthread_setname_np(pthread_self(), "argosy-nccl");
  const auto inside = enter_if_possible();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queued_.empty(); });
    if (queued_.empty()) {
      return;
    }
    Queued& first = queued_.front();  // stays where it is while others come behind it
    follow_call(lock, first);
    lock.unlock();
    const std::exception_ptr cause = first.stage == Stage::kQueued ? follow(first) : nullptr;
    if (first.begun) {
      watch().end();
    }
    // Before the device goes on: who reads what it then has must know that it is garbage.
    if (first.listener != nullptr) {
      first.listener->ended(cause);
    }
    if (cause != nullptr) {
      interrupt();
    }
    lock.lock();
    {
      const Queued done = std::move(first);
      queued_.pop_front();
      lock.unlock();
    }  // its events are destroyed without the lock
    lock.lock();
  }
}

/// Returns, with the lock, when the call that queues the collective has ended. It ends one that
/// waits for a rank that is late, gone or has left: the caller then hears why.
void NcclTransport::follow_call(std::unique_lock<std::mutex>& lock, Queued& queued) {
  const auto has_ended = [&] { return queued.stage != Stage::kCalled; };
  const auto deadline = Deadline::after(queued.timeout);
  auto next_question = Deadline::after(suspicion_);
  while (!changed_.wait_for(lock, kLongCall, has_ended)) {
    lock.unlock();
    begin(queued);
    if (!interrupted_) {
      try {
        if (deadline.expired()) {
          throw waits_for_others();
        }
        if (next_question.expired()) {
          throw_if_left(leaver_before(queued));
          next_question = Deadline::after(suspicion_);
        }
      } catch (...) {
        (void)verdict_on(attempt_of(queued.call, queued.timeout), std::current_exception());
        interrupt();
      }
    }
    lock.lock();
  }
}

/// Tells the watch, which then looks for ranks that are gone.
void NcclTransport::begin(Queued& queued) {
  if (!std::exchange(queued.begun, true)) {
    (void)watch().begin(queued.call);
  }
}

std::optional<int> NcclTransport::leaver_before(const Queued& queued) {
  return watch().who_left(queued.call.seq);
}

/// Returns what ended the collective, or nullptr, when the device has passed it.
std::exception_ptr NcclTransport::follow(Queued& queued) {
  const auto check = [this] {
    if (communicator_ != nullptr) {
      communicator_->check();
    }
  };
  try {
    await(*queued.begin, Deadline::never(), check, [] { return std::nullopt; });
    begin(queued);
    if (queued.listener != nullptr) {
      queued.listener->started();
    }
    await(
        *queued.end, Deadline::after(queued.timeout), check, [&] { return leaver_before(queued); });
  } catch (...) {
    return verdict_on(attempt_of(queued.call, queued.timeout), std::current_exception());
  }
  return nullptr;
}

/// Waits until the device has come to `place`. `check` throws when it never will, and `who_left`
/// says whose leaving makes it so.
void NcclTransport::await(DeviceMark& place,
                          const Deadline& deadline,
                          const std::function<void()>& check,
                          const std::function<std::optional<int>()>& who_left) {
  microseconds pause = kFirstLook;
  auto next_question = Deadline::after(suspicion_);
  const auto has_passed = [&] {
    try {
      return place.has_passed();
    } catch (const std::exception& e) {
      throw OwnFault{fmt::format("the device reports an error: {}", e.what())};
    }
  };
  while (!has_passed()) {
    throw_if_interrupted();
    if (deadline.expired()) {
      throw waits_for_others();
    }
    check();
    if (next_question.expired()) {
      throw_if_left(who_left());
      next_question = Deadline::after(suspicion_);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLastLook);
  }
  throw_if_interrupted();  // it may have passed because it was aborted
}

LinkTimeout NcclTransport::waits_for_others() const {
  std::vector<int> others = everyone(size());
  others.erase(others.begin() + rank());
  return {others};
}

void NcclTransport::throw_if_interrupted() const {
  if (interrupted_) {
    throw LinkBroken{-1, "interrupted"};
  }
}

/// What the device passes after an abort is garbage, and interrupt() says so before it aborts.
void NcclTransport::check() {
  try {
    throw_if_interrupted();
  } catch (...) {
    std::rethrow_exception(verdict_on({.op = "check"}, std::current_exception()));
  }
}

/// A device that failed may not become the current one, but its communicators still have to end.
std::shared_ptr<void> NcclTransport::enter_if_possible() const noexcept {
  try {
    return queue_->enter();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void NcclTransport::interrupt() {
  interrupted_ = true;
  std::vector<Communicator*> all;
  std::vector<std::shared_ptr<Lane>> lanes;
  {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) {
      return;
    }
    all.push_back(communicator_.get());
    if (lanes_ != nullptr) {
      lanes = lanes_->stop();
    }
  }
  const auto inside = enter_if_possible();
  for (const std::shared_ptr<Lane>& lane : lanes) {
    all.push_back(&lane->communicator());
  }
  Communicator::abort_together(library_, all);
  for (const std::shared_ptr<Lane>& lane : lanes) {
    lane->give_up();
  }
}

void NcclTransport::disconnect() {
  if (!interrupted_) {
    end_in_peace();
  }
  interrupt();
}

/// Does nothing where work is on its way: the end in peace of one communicator may wait for the
/// whole device, and so for ever. That work is aborted, all of it at once.
void NcclTransport::end_in_peace() {
  std::vector<std::shared_ptr<Lane>> lanes;
  {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr || !std::ranges::all_of(queued_, has_passed)) {
      return;
    }
    lanes = lanes_->stop();
  }
  if (std::ranges::any_of(lanes, &Lane::is_busy)) {
    return;
  }
  const auto inside = enter_if_possible();
  const Deadline deadline = Deadline::after(kFarewell);
  for (const std::shared_ptr<Lane>& lane : lanes) {
    (void)lane->close(deadline);  // what does not end in peace is aborted
  }
  (void)communicator_->close(deadline);
}

/// The thread that follows may not have seen it yet.
bool NcclTransport::has_passed(const Queued& queued) {
  try {
    return queued.stage == Stage::kQueued && queued.end->has_passed();
  } catch (const std::exception&) {  // a device that failed passes nothing more
    return false;
  }
}

}  // namespace argosy::transport::nccl
