#include "argosy/rpc/server.h"

#include <fmt/format.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/rendezvous/wire.h"
#include "argosy/rpc/errors.h"
#include "argosy/rpc/message.h"

namespace argosy::rpc {
namespace {

namespace net = rendezvous::wire;

/// A name that a stranger sent, as messages show it.
std::string shown_name(const std::string& text) {
  constexpr size_t kMost = 64;
  return text::printable(std::string_view(text).substr(0, kMost));
}

Deadline to_deadline(std::chrono::system_clock::time_point at) {
  const auto now = std::chrono::system_clock::now();
  if (at - now > std::chrono::hours(24)) {  // also the largest, for which none was given
    return Deadline::after(std::chrono::hours(24));
  }
  return Deadline::after(std::chrono::ceil<std::chrono::milliseconds>(at - now));
}

void describe(const std::exception_ptr& thrown, wire::Failure& failure) {
  constexpr size_t kLongest = size_t{64} << 10;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    failure.set_type(type_of_current_exception());
    const std::string text = error.what();
    const size_t end = text.find("] ");
    const bool ours = dynamic_cast<const Error*>(&error) != nullptr && end != std::string::npos;
    failure.set_place(ours ? text.substr(1, end - 1) : "");
    failure.set_text(text.substr(ours ? end + 2 : 0, kLongest));
  } catch (...) {
    failure.set_type(type_of_current_exception());
  }
}

}  // namespace

/// One call from its first byte to its last. gRPC, the thread that runs the function and a Later
/// hold it. All that is written goes through `waiting_` under the mutex; `busy_` says that gRPC has
/// a write of ours, and after `over_` nothing may be started.
class Server::ServedCall final : public grpc::ServerGenericBidiReactor,
                                 public Answer,
                                 public std::enable_shared_from_this<ServedCall> {
 public:
  ServedCall(Server& server, grpc::GenericCallbackServerContext* context)
      : server_(server), context_(context), deadline_(to_deadline(context->deadline())) {}

  void start(std::shared_ptr<ServedCall> self) {
    self_ = std::move(self);
    grpc::Status admitted = context_->method() == kMethod
                                ? server_.admission_.admit(*context_)
                                : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no such method");
    if (!admitted.ok()) {
      refuse_with(admitted);
      return;
    }
    StartRead(&incoming_);
  }

  // Answer.
  [[nodiscard]] const std::string& caller() const override { return request_.caller(); }
  [[nodiscard]] Deadline deadline() const override { return deadline_; }
  [[nodiscard]] bool cancelled() const override {
    return cancelled_.load(std::memory_order_acquire) || deadline_.expired();
  }
  [[nodiscard]] Draft allocate(size_t bytes) override {
    if (line_ != nullptr) {
      if (std::optional<Draft> draft = line_->allocate(bytes, expiry())) {
        return *std::move(draft);
      }
    }
    return plain_draft(bytes);
  }
  void send(Parcel value) override {
    // Not in shared memory: its messages are so small that nothing would hold the sender back.
    std::deque<grpc::ByteBuffer> messages = to_messages(std::move(value), nullptr, nullptr);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || (waiting_.empty() && !busy_); });
    if (stopped_) {
      throw CallError("rpc.stream",
                      fmt::format("worker \"{}\" does not wait for more: it has stopped the call, "
                                  "ended or waited too long",
                                  caller()),
                      {.op = function_name()},
                      caller(),
                      CallOutcome::kUnknown);
    }
    std::ranges::move(messages, std::back_inserter(waiting_));
    advance(lock);
  }
  void finish(Parcel result) override {
    end(to_messages(std::move(result), nullptr, line_.get()), grpc::Status::OK);
  }
  void finish_stream() override { end({}, grpc::Status::OK); }
  void fail(const std::exception_ptr& error) override {
    end(to_messages(Parcel(), error, nullptr), grpc::Status::OK);
  }
  void refuse(const std::string& why) override {
    refuse_with({grpc::StatusCode::INVALID_ARGUMENT, why});
  }

  /// Ends it without a result, when the server closes.
  void abandon() {
    end({}, {grpc::StatusCode::CANCELLED, "the worker leaves the job"}, /*drop=*/true);
  }

 private:
  // Reactions.
  void OnReadDone(bool ok) override {
    if (!ok) {
      if (!started_) {
        refuse("the request is not whole");
      }
      return;
    }
    try {
      take();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      refuse(text.substr(text.find("] ") + 2));
    }
  }

  void take() {
    if (!coming_) {
      std::optional<wire::Request> request = parse<wire::Request>(incoming_);
      if (!request) {
        refuse("the request cannot be read");
        return;
      }
      request_ = *std::move(request);
      if (!request_.line().empty() && server_.landing_ != nullptr) {
        line_ = server_.landing_->line(request_.line());
      }
      coming_.emplace(request_.memories(), line_.get(), server_.options_.largest_call_bytes);
    } else {
      coming_->take(incoming_);
    }
    incoming_.Clear();
    if (coming_->is_whole()) {
      dispatch();
    } else {
      StartRead(&incoming_);
    }
  }

  void dispatch() {
    started_ = true;
    served_ = server_.functions_.find(request_.function());
    if (served_ == nullptr) {
      refuse(no_such_function());
      return;
    }
    arguments_.values().Swap(request_.mutable_arguments());
    arguments_.memories() = std::move(*coming_).memories();
    if (served_->options.quick) {
      run();
      return;
    }
    if (server_.queued_.fetch_add(1) >= server_.options_.most_queued_calls) {
      server_.queued_.fetch_sub(1);
      refuse(fmt::format("{} calls wait already (AgentOptions::most_queued_calls)",
                         server_.options_.most_queued_calls));
      return;
    }
    (void)server_.pool_->submit([self = shared_from_this()] {
      self->server_.queued_.fetch_sub(1);
      if (self->cancelled()) {
        self->end({}, grpc::Status::CANCELLED);
      } else {
        self->run();
      }
    });
  }

  void run() {
    served_->handler(shared_from_this(), arguments_);
    arguments_ = Parcel();
  }

  [[nodiscard]] std::string no_such_function() const {
    const std::vector<std::string> names = server_.functions_.names();
    const std::optional<std::string> close = strings::closest(function_name(), names);
    return fmt::format("it serves no function \"{}\"{}. It serves {}",
                       shown_name(function_name()),
                       close ? fmt::format("; did you mean \"{}\"?", *close) : "",
                       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  [[nodiscard]] const std::string& function_name() const { return request_.function(); }

  /// What the caller has not claimed by then it will not claim.
  [[nodiscard]] Deadline expiry() const {
    return Deadline::after(deadline_.remaining() + std::chrono::seconds(1));
  }

  std::deque<grpc::ByteBuffer> to_messages(Parcel result,
                                           const std::exception_ptr& error,
                                           SharedLine* line) {
    wire::Reply reply;
    if (error != nullptr) {
      describe(error, *reply.mutable_failure());
    } else {
      reply.mutable_values()->Swap(&result.values());
    }
    Leaving leaving(std::move(result.memories()), line, expiry());
    leaving.describe(*reply.mutable_memories());
    leaving.offers().keep();
    return leaving.messages(reply);
  }

  void OnWriteDone(bool ok) override {
    std::unique_lock lock(mutex_);
    busy_ = false;
    if (!ok) {
      stop();
    }
    advance(lock);
  }

  void OnCancel() override { end({}, grpc::Status::CANCELLED, /*drop=*/true); }

  void OnDone() override {
    const std::shared_ptr<ServedCall> self = std::move(self_);
    leave();
  }

  void refuse_with(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (!status_) {
        context_->AddTrailingMetadata(kRefused, "1");
      }
    }
    end({}, status);
  }

  /// The first call of it counts. `drop`: nobody reads what waits to be written.
  void end(std::deque<grpc::ByteBuffer> last, const grpc::Status& status, bool drop = false) {
    std::unique_lock lock(mutex_);
    if (drop) {
      stop();
    }
    if (!status_) {
      std::ranges::move(last, std::back_inserter(waiting_));
      status_ = status;
    }
    advance(lock);
  }

  void stop() {
    stopped_ = true;
    cancelled_.store(true, std::memory_order_release);
    waiting_.clear();
    changed_.notify_all();
  }

  /// Starts the next write, or the end.
  void advance(std::unique_lock<std::mutex>& lock) {
    if (busy_ || over_) {
      return;
    }
    if (!waiting_.empty()) {
      busy_ = true;
      outgoing_ = waiting_.front();
      waiting_.pop_front();
      over_ = waiting_.empty() && status_.has_value();
      const bool last = over_;
      lock.unlock();
      if (last) {
        StartWriteAndFinish(&outgoing_, {}, *status_);
      } else {
        StartWrite(&outgoing_);
      }
      return;
    }
    changed_.notify_all();
    if (status_) {
      over_ = true;
      lock.unlock();
      Finish(*status_);
    }
  }

  void leave();

  Server& server_;
  grpc::GenericCallbackServerContext* const context_;  ///< until over_
  const Deadline deadline_;
  std::shared_ptr<ServedCall> self_{};  ///< while gRPC has it

  // Of gRPC's reactions, which come one after the other, and then of the function.
  grpc::ByteBuffer incoming_{};
  wire::Request request_{};
  std::shared_ptr<SharedLine> line_{};
  std::optional<Coming> coming_{};
  std::shared_ptr<const Functions::Served> served_{};
  Parcel arguments_{};
  bool started_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<grpc::ByteBuffer> waiting_{};
  grpc::ByteBuffer outgoing_{};
  std::optional<grpc::Status> status_{};
  bool busy_ = false;
  bool over_ = false;
  bool stopped_ = false;
  std::atomic<bool> cancelled_ = false;
};

/// Knows the calls that are under way, so that they end when the server closes.
class Server::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(Server& server) : server_(server) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    auto call = std::make_shared<ServedCall>(server_, context);
    ServedCall* const reactor = call.get();
    {
      const std::lock_guard lock(mutex_);
      calls_[reactor] = call;
    }
    reactor->start(std::move(call));
    return reactor;
  }

  void remove(ServedCall* call) {
    const std::lock_guard lock(mutex_);
    calls_.erase(call);
  }

  void abandon_all() {
    std::vector<std::shared_ptr<ServedCall>> all;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [reactor, call] : calls_) {
        if (std::shared_ptr<ServedCall> alive = call.lock()) {
          all.push_back(std::move(alive));
        }
      }
    }
    for (const std::shared_ptr<ServedCall>& call : all) {
      call->abandon();
    }
  }

 private:
  Server& server_;
  std::mutex mutex_;
  std::map<ServedCall*, std::weak_ptr<ServedCall>> calls_{};
};

void Server::ServedCall::leave() {
  server_.service_->remove(this);
}

Server::Server(const ServerOptions& options, Functions functions)
    : options_(options),
      functions_(std::move(functions)),
      landing_(options.shared_memory_bytes > 0
                   ? std::make_unique<Landing>(options.shared_memory_bytes)
                   : nullptr),
      admission_("rpc.server", "call", options.token),
      pool_(std::make_unique<ThreadPool>(static_cast<size_t>(options.threads), "argosy-rpc")),
      service_(std::make_unique<Service>(*this)) {
  net::prepare_grpc();
  const std::vector<std::string> addresses =
      net::grpc_addresses(options.host, 0).or_throw<RendezvousError>("rpc.listen");
  grpc::ServerBuilder builder;
  constexpr size_t kMost = std::numeric_limits<int>::max();
  net::configure(builder, static_cast<int>(std::min(options.largest_call_bytes, kMost)));
  net::add_port(builder, addresses.front(), options.tls, &port_);
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) {
    const int error = net::listen_error(options.host, 0);
    throw RendezvousError("rpc.listen",
                          fmt::format("cannot listen on {}: {}. Set ARGOSY_IFNAME to an interface "
                                      "of this host",
                                      options.host,
                                      error == 0 ? "gRPC gave no reason" : errno_message(error)));
  }
}

Server::~Server() {
  service_->abandon_all();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
  server_->Wait();
  pool_.reset();  // waits for functions that still run
}

}  // namespace argosy::rpc
