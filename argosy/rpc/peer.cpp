#include "argosy/rpc/peer.h"

#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <deque>
#include <optional>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/os/addresses.h"
#include "argosy/os/random.h"
#include "argosy/rendezvous/wire.h"
#include "argosy/rpc/message.h"
#include "argosy/rpc/server.h"

namespace argosy::rpc {
namespace {

namespace net = rendezvous::wire;
using std::chrono::milliseconds;

/// How long a caller that waits for a connection does not look whether the worker is gone.
constexpr milliseconds kConnectSlice{200};
/// How long it looks for what became of a worker whose connection broke.
constexpr milliseconds kInquiry{1000};
/// Values of a stream that wait here, before the worker has to wait.
constexpr size_t kWindow = 16;

std::shared_ptr<grpc::Channel> channel_to(const wire::Card& card, const rendezvous::Tls& tls) {
  net::prepare_grpc();
  const auto addresses = net::grpc_addresses(card.host(), static_cast<uint16_t>(card.port()))
                             .or_throw<RendezvousError>("rpc.connect");
  return net::make_channel(addresses, tls, card.host());
}

}  // namespace

/// One call, from its request to its last answer. gRPC holds it while it works on it, and so do
/// those who wait.
class Peer::MadeCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                             public Pending {
 public:
  MadeCall(std::shared_ptr<Peer> peer, std::string function, const Deadline& deadline, Kind kind)
      : peer_(std::move(peer)),
        function_(std::move(function)),
        deadline_(deadline),
        start_(Deadline::Clock::now()),
        kind_(kind) {}

  void start(std::shared_ptr<MadeCall> self, Parcel arguments) {
    self_ = std::move(self);
    line_ = peer_->line();
    wire::Request request;
    request.set_function(function_);
    request.set_caller(peer_->options().name);
    if (line_ != nullptr) {
      request.set_line(peer_->line_id_);
    }
    Leaving leaving(std::move(arguments.memories()), line_.get(), deadline_);
    request.mutable_arguments()->Swap(&arguments.values());
    leaving.describe(*request.mutable_memories());
    outgoing_ = leaving.messages(request);
    offers_ = std::move(leaving.offers());
    net::sign(context_, peer_->options().token);
    context_.set_deadline(net::to_grpc(deadline_));
    peer_->stub_.PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    if (kind_ == Kind::kStream) {
      AddHold();  // values are read when they are asked for, outside of a reaction
      held_ = true;
    }
    write_next();
    StartRead(&incoming_);
    StartCall();
  }

  bool wait(const Deadline& deadline) override {
    std::unique_lock lock(mutex_);
    return wait_until(changed_, lock, deadline, [&] { return ended_; });
  }
  bool is_completed() const override {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  const Parcel& result() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_; });
    throw_if_failed(lock);
    return values_.front();
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
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    cancelled_ = true;
    if (std::exchange(stalled_, false)) {
      lock.unlock();
      StartRead(&incoming_);  // finds that the call is over
    }
  }
  std::exception_ptr misread(const std::string& why) const override {
    const std::string text = why.substr(why.find("] ") + 2);
    return peer_->error(
        function_, CallOutcome::kDone, false, "its result is of another type: " + text);
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
      coming_.emplace(reply_->memories(), line_.get(), peer_->options().largest_call_bytes);
    } else {
      coming_->take(incoming_);
    }
    incoming_.Clear();
    if (!coming_->is_whole()) {
      return true;
    }
    if (reply_->has_failure()) {
      const std::lock_guard lock(mutex_);
      thrown_ = reply_->failure();
      end();
      return kind_ == Kind::kStream;
    }
    Parcel value;
    value.values().Swap(reply_->mutable_values());
    value.memories() = std::move(*coming_).memories();
    coming_.reset();
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    if (kind_ == Kind::kOne) {
      end();
      return false;
    }
    changed_.notify_all();
    stalled_ = values_.size() >= kWindow && !cancelled_;
    return !stalled_;
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<MadeCall> self = std::move(self_);
    const bool refused = context_.GetServerTrailingMetadata().contains(kRefused);
    const std::lock_guard lock(mutex_);
    status_ = status;
    refused_ = refused;
    offers_.withdraw();
    end();
  }

  /// With the mutex.
  void end() {
    if (!std::exchange(ended_, true)) {
      took_ = Deadline::Clock::now() - start_;
    }
    changed_.notify_all();
  }

  /// With the mutex, when the call has ended.
  void throw_if_failed(std::unique_lock<std::mutex>& lock) {
    if (error_ == nullptr && thrown_) {
      error_ = remote_error(*thrown_);
    }
    if (error_ == nullptr && values_.empty() && (!status_.ok() || kind_ == Kind::kOne)) {
      const grpc::Status status = status_;
      const bool refused = refused_;
      lock.unlock();  // it may ask the store
      std::exception_ptr error = error_of(status, refused);
      lock.lock();
      error_ = std::move(error);
    }
    if (error_ != nullptr) {
      std::rethrow_exception(error_);
    }
  }

  std::exception_ptr remote_error(const wire::Failure& failure) const {
    const std::string what =
        fmt::format("{}: function \"{}\" threw {}: {}{}",
                    peer_->described(),
                    function_,
                    failure.type().empty() ? "an exception" : text::printable(failure.type()),
                    failure.place().empty() ? "" : "[" + failure.place() + "] ",
                    failure.text());
    return std::make_exception_ptr(
        RemoteError(what,
                    {.op = function_,
                     .rank = peer_->options().rank,
                     .peers = {static_cast<int>(peer_->card_.rank())}},
                    peer_->card_.name(),
                    {.type = failure.type(), .text = failure.text(), .place = failure.place()}));
  }

  std::exception_ptr error_of(const grpc::Status& status, bool refused) const {
    const auto make = [&](CallOutcome outcome, const std::string& what) {
      return peer_->error(
          function_, outcome, status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED, what);
    };
    if (refused) {
      return make(CallOutcome::kRefused, "it refused the call: " + status.error_message());
    }
    if (!broken_.empty()) {
      return make(CallOutcome::kUnknown, "its reply is wrong: " + broken_);
    }
    if (cancelled_) {
      return make(CallOutcome::kUnknown, "the call was cancelled here");
    }
    if (status.error_code() == grpc::StatusCode::CANCELLED) {
      return make(CallOutcome::kUnknown, "it left the job while the call ran");
    }
    const int rank = static_cast<int>(peer_->card_.rank());
    const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    const auto& ask = peer_->options().what_became_of;
    // The connection of a worker that dies breaks at once, and the store hears of it a moment
    // later.
    const std::string fate = ask ? ask(rank, late ? milliseconds(0) : kInquiry) : "";
    if (!fate.empty()) {
      return make(CallOutcome::kUnknown, "it " + fate);
    }
    if (late) {
      return make(CallOutcome::kUnknown,
                  fmt::format("it did not answer within {}", text::duration(took_)));
    }
    return make(CallOutcome::kUnknown,
                fmt::format("the connection to it broke ({})", status.error_message()));
  }

  const std::shared_ptr<Peer> peer_;
  const std::string function_;
  const Deadline deadline_;
  const Deadline::Clock::time_point start_;
  const Kind kind_;
  grpc::ClientContext context_;
  std::shared_ptr<SharedLine> line_{};
  std::shared_ptr<MadeCall> self_{};  ///< while gRPC has it

  // Of gRPC's reactions.
  std::deque<grpc::ByteBuffer> outgoing_{};
  grpc::ByteBuffer incoming_{};
  std::optional<wire::Reply> reply_{};
  std::optional<Coming> coming_{};
  std::string broken_{};
  bool held_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Parcel> values_{};
  std::optional<wire::Failure> thrown_{};
  grpc::Status status_{};
  Offers offers_{};
  std::exception_ptr error_{};
  std::chrono::duration<double> took_{};
  bool ended_ = false;
  bool refused_ = false;
  bool stalled_ = false;
  std::atomic<bool> cancelled_ = false;
};

Peer::Peer(wire::Card card, std::shared_ptr<const CallerOptions> options)
    : card_(std::move(card)),
      options_(std::move(options)),
      channel_(channel_to(card_, options_->tls)),
      stub_(channel_) {}

std::string Peer::described() const {
  return fmt::format("worker \"{}\" (rank {}, {})", card_.name(), card_.rank(), card_.machine());
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
                outcome));
}

/// A call on a channel that is not connected would fail at once where the worker is a moment late,
/// and could have been sent or not.
void Peer::connect(const std::string& function, const Deadline& deadline) {
  const int rank = static_cast<int>(card_.rank());
  while (channel_->GetState(true) != GRPC_CHANNEL_READY) {
    if (channel_->WaitForConnected(net::to_grpc(deadline.sooner(Deadline::after(kConnectSlice))))) {
      return;
    }
    const std::string fate =
        options_->what_became_of ? options_->what_became_of(rank, milliseconds(0)) : "";
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

std::shared_ptr<SharedLine> Peer::line() {
  const std::lock_guard lock(mutex_);
  if (line_ != nullptr && line_->is_abandoned()) {
    line_.reset();
  }
  if (line_tried_ || options_->shared_memory_bytes == 0 || card_.socket().empty() ||
      options_->neighbourhood != card_.neighbourhood()) {
    return line_;
  }
  line_tried_ = true;
  line_id_ = os::random_hex(8);
  Result<std::shared_ptr<SharedLine>> made =
      connect_line(card_.socket(), card_.secret(), line_id_, options_->shared_memory_bytes);
  if (!made.ok()) {
    log::warn("[rpc.shared_memory] {}: no memory is shared with it: {}",
              described(),
              made.failure().what);
    return nullptr;
  }
  line_ = *std::move(made);
  return line_;
}

std::shared_ptr<Pending> Peer::start(const std::string& function,
                                     Parcel arguments,
                                     const Deadline& deadline,
                                     Kind kind) {
  connect(function, deadline);
  auto call = std::make_shared<MadeCall>(shared_from_this(), function, deadline, kind);
  call->start(call, std::move(arguments));
  return call;
}

Draft Peer::allocate(size_t bytes, const Deadline& deadline) {
  if (const std::shared_ptr<SharedLine> line = this->line()) {
    if (std::optional<Draft> draft = line->allocate(bytes, deadline)) {
      return *std::move(draft);
    }
  }
  return plain_draft(bytes);
}

}  // namespace argosy::rpc
