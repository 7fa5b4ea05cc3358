#include "argosy/rpc/peer.h"

#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/os/addresses.h"
#include "argosy/os/random.h"
#include "argosy/rendezvous/wire.h"
#include "argosy/rpc/landing.h"
#include "argosy/rpc/lane_caller.h"
#include "argosy/rpc/made_call.h"
#include "argosy/rpc/message.h"
#include "argosy/rpc/server.h"

namespace argosy::rpc {
namespace {

namespace net = rendezvous::wire;
using std::chrono::milliseconds;

/// How long a caller that waits for a connection does not look whether the worker is gone: at
/// first, and at most.
constexpr milliseconds kFirstSlice{5};
constexpr milliseconds kLongestSlice{200};
/// Values of a stream that wait here, before the worker has to wait.
constexpr size_t kWindow = 16;

std::shared_ptr<grpc::Channel> channel_to(const wire::Card& card, const CallerOptions& options) {
  net::prepare_grpc();
  const auto addresses = net::grpc_addresses(card.host(), static_cast<uint16_t>(card.port()))
                             .or_throw<RendezvousError>("rpc.connect");
  constexpr size_t kMost = std::numeric_limits<int>::max();
  return net::make_channel(addresses,
                           options.tls,
                           card.host(),
                           static_cast<int>(std::min(options.largest_call_bytes, kMost)));
}

}  // namespace

/// A call through the network stack. gRPC holds it while it works on it, and so do those who wait.
class Peer::GrpcCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                             public MadeCall {
 public:
  GrpcCall(std::shared_ptr<Peer> peer, std::string function, const Deadline& deadline, Kind kind)
      : MadeCall(std::move(peer), std::move(function), deadline), kind_(kind) {}

  void start(std::shared_ptr<GrpcCall> self, Parcel arguments) {
    self_ = std::move(self);
    const Shortcut way = peer().shortcut();
    line_ = way.line;
    Leaving leaving(std::move(arguments.memories()), line_.get(), deadline());
    wire::Request request = this->request(arguments, leaving);
    request.set_stream(kind_ == Kind::kStream);
    request.set_line(way.id);
    request.set_brings_lane(way.lane != nullptr && way.lane->is_new());
    outgoing_ = leaving.messages(request);
    offers_ = std::move(leaving.offers());
    net::sign(context_, peer().options().token);
    context_.set_deadline(net::to_grpc(deadline()));
    peer().stub_.PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    if (kind_ == Kind::kStream) {
      AddHold();  // values are read when they are asked for, outside of a reaction
      held_ = true;
    }
    write_next();
    StartRead(&incoming_);
    StartCall();
  }

  std::optional<Parcel> next() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !values_.empty(); });
    if (values_.empty()) {
      throw_if_failed(lock);
      return std::nullopt;
    }
    Parcel value = std::move(values_.front());
    values_.pop_front();
    if (std::exchange(stalled_, false)) {
      lock.unlock();
      StartRead(&incoming_);
    }
    return value;
  }
  void cancel() override {
    cancelled_ = true;
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    if (std::exchange(stalled_, false)) {
      lock.unlock();
      StartRead(&incoming_);  // finds that the call is over
    }
  }

 private:
  void write_next() {
    grpc::ByteBuffer& next = outgoing_.front();
    if (outgoing_.size() == 1) {
      StartWriteLast(&next, {});
    } else {
      StartWrite(&next);
    }
  }

  void OnWriteDone(bool ok) override {
    outgoing_.pop_front();
    if (ok && !outgoing_.empty()) {
      write_next();
    }
  }

  void OnReadDone(bool ok) override {
    bool more = false;
    if (ok) {
      try {
        more = take();
      } catch (const std::exception& error) {
        broken_ = error.what();
        context_.TryCancel();
      }
    }
    if (more) {
      StartRead(&incoming_);
    } else if (held_ && (!ok || !broken_.empty())) {
      held_ = false;
      RemoveHold();
    }
  }

  /// Returns true when more is to be read now.
  bool take() {
    if (!coming_) {
      reply_ = parse<wire::Reply>(incoming_);
      if (!reply_) {
        throw RendezvousError("rpc.reply", "the reply cannot be read");
      }
      coming_.emplace(reply_->memories(), line_.get(), peer().options().largest_call_bytes);
    } else {
      coming_->take(incoming_);
    }
    incoming_.Clear();
    if (!coming_->is_whole()) {
      return true;
    }
    if (reply_->has_failure()) {
      const std::lock_guard lock(mutex_);
      end_with(std::move(*reply_->mutable_failure()));
      return kind_ == Kind::kStream;
    }
    Parcel value;
    value.values().Swap(reply_->mutable_values());
    value.memories() = std::move(*coming_).memories();
    coming_.reset();
    const std::lock_guard lock(mutex_);
    if (kind_ == Kind::kOne) {
      end_with(std::move(value));
      return false;
    }
    values_.push_back(std::move(value));
    changed_.notify_all();
    stalled_ = values_.size() >= kWindow && !cancelled_;
    return !stalled_;
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<GrpcCall> self = std::move(self_);
    NoAnswer why{.status = status,
                 .refused = context_.GetServerTrailingMetadata().contains(kRefused),
                 .cancelled = cancelled_,
                 .broken = broken_};
    const std::lock_guard lock(mutex_);
    if (kind_ == Kind::kStream && status.ok()) {
      end_stream();
    } else {
      end_with(std::move(why));
    }
  }

  const Kind kind_;
  grpc::ClientContext context_;
  std::shared_ptr<SharedLine> line_{};
  std::shared_ptr<GrpcCall> self_{};  ///< while gRPC has it

  // Of gRPC's reactions.
  std::deque<grpc::ByteBuffer> outgoing_{};
  grpc::ByteBuffer incoming_{};
  std::optional<wire::Reply> reply_{};
  std::optional<Coming> coming_{};
  std::string broken_{};
  bool held_ = false;

  bool stalled_ = false;  ///< with the mutex
  std::atomic<bool> cancelled_ = false;
};

Peer::Peer(wire::Card card, std::shared_ptr<const CallerOptions> options)
    : card_(std::move(card)),
      options_(std::move(options)),
      channel_(channel_to(card_, *options_)),
      stub_(channel_) {}

std::string Peer::described() const {
  return fmt::format("worker \"{}\" (rank {}, {})", card_.name(), card_.rank(), card_.machine());
}

std::string Peer::fate(milliseconds patience) const {
  std::string fate =
      options_->what_became_of ? options_->what_became_of(card_, patience) : std::string();
  if (!fate.empty()) {
    gone_ = true;
  }
  return fate;
}

std::exception_ptr Peer::error(const std::string& function,
                               CallOutcome outcome,
                               bool timeout,
                               const std::string& what) const {
  const std::string_view then = outcome == CallOutcome::kRefused ? "The function did not run"
                                : outcome == CallOutcome::kUnknown
                                    ? "Whether the function ran is not known"
                                    : "The function ran";
  return std::make_exception_ptr(
      CallError(timeout ? "rpc.timeout" : "rpc.call",
                fmt::format("{}: function \"{}\": {}. {}.", described(), function, what, then),
                {.op = function, .rank = options_->rank, .peers = {static_cast<int>(card_.rank())}},
                card_.name(),
                outcome,
                gone_));
}

/// Its connections may not know yet. One that was stopped may go on.
void Peer::refuse_if_gone(const std::string& function) {
  if (!gone_) {
    return;
  }
  const std::string fate = this->fate(milliseconds(0));
  gone_ = !fate.empty();
  if (gone_) {
    std::rethrow_exception(error(function, CallOutcome::kRefused, false, "it " + fate));
  }
}

/// A call on a channel that is not connected would fail at once where the worker is a moment late,
/// and could have been sent or not.
void Peer::connect(const std::string& function, const Deadline& deadline) {
  for (milliseconds slice = kFirstSlice; channel_->GetState(true) != GRPC_CHANNEL_READY;
       slice = std::min(2 * slice, kLongestSlice)) {
    if (channel_->WaitForConnected(net::to_grpc(deadline.sooner(Deadline::after(slice))))) {
      return;
    }
    const std::string fate = this->fate(milliseconds(0));
    if (!fate.empty() || deadline.expired()) {
      std::rethrow_exception(
          error(function,
                CallOutcome::kRefused,
                fate.empty(),
                fate.empty()
                    ? fmt::format("it cannot be reached at {}",
                                  os::host_port(card_.host(), static_cast<uint16_t>(card_.port())))
                    : "it " + fate));
    }
  }
}

Peer::Shortcut Peer::shortcut() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(shortcut_tried_, true) && options_->shared_memory_bytes > 0 &&
      !card_.socket().empty() && options_->neighbourhood == card_.neighbourhood()) {
    make_shortcut();
  }
  const bool busy = shortcut_.lane != nullptr && shortcut_.lane->is_open();
  if (!busy && shortcut_.line != nullptr && shortcut_.line->is_abandoned()) {
    shortcut_ = {};
  }
  return shortcut_;
}

void Peer::make_shortcut() {
  const std::string id = os::random_hex(8);
  const auto failed = [&](const Failure& why) {
    log::warn("[rpc.shared_memory] {}: no memory is shared with it: {}", described(), why.what);
  };
  Result<std::shared_ptr<SharedLine>> line =
      connect_line(card_.socket(), card_.secret(), id, options_->shared_memory_bytes);
  if (!line.ok()) {
    return failed(line.failure());
  }
  Result<std::unique_ptr<Lane>> lane = connect_lane(card_.socket(), card_.secret(), id);
  if (!lane.ok()) {
    return failed(lane.failure());
  }
  shortcut_ = {
      .id = id, .line = *std::move(line), .lane = std::make_shared<LaneCaller>(*std::move(lane))};
}

std::shared_ptr<Pending> Peer::start(const std::string& function,
                                     Parcel arguments,
                                     const Deadline& deadline,
                                     Kind kind) {
  arguments.check_size(options_->largest_call_bytes);
  refuse_if_gone(function);
  if (kind == Kind::kOne) {
    const Shortcut way = shortcut();
    if (way.lane != nullptr && way.lane->is_open()) {
      return way.lane->start(
          shared_from_this(), function, std::move(arguments), deadline, way.line);
    }
  }
  connect(function, deadline);
  auto call = std::make_shared<GrpcCall>(shared_from_this(), function, deadline, kind);
  call->start(call, std::move(arguments));
  return call;
}

Draft Peer::allocate(size_t bytes, const Deadline& deadline) {
  if (const std::shared_ptr<SharedLine> line = shortcut().line) {
    if (std::optional<Draft> draft = line->allocate(bytes, deadline)) {
      return *std::move(draft);
    }
  }
  return plain_draft(bytes);
}

}  // namespace argosy::rpc
