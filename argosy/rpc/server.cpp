#include "argosy/rpc/server.h"

#include <fmt/format.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/rendezvous/wire.h"
#include "argosy/rpc/errors.h"
#include "argosy/rpc/message.h"

namespace argosy::rpc {
namespace {

namespace net = rendezvous::wire;

Deadline to_deadline(std::chrono::system_clock::time_point at) {
  const auto now = std::chrono::system_clock::now();
  if (at - now > std::chrono::hours(24)) {  // also the largest, for which none was given
    return Deadline::after(std::chrono::hours(24));
  }
  return Deadline::after(std::chrono::ceil<std::chrono::milliseconds>(at - now));
}

}  // namespace

/// One call from its first byte to its last. gRPC, the thread that runs the function and a Later
/// hold it. All that is written goes through `waiting_` under the mutex; `busy_` says that gRPC has
/// a write of ours, and after `over_` nothing may be started.
class Server::GrpcCall final : public grpc::ServerGenericBidiReactor, public ServedCall {
 public:
  GrpcCall(Server& server, grpc::GenericCallbackServerContext* context)
      : ServedCall(to_deadline(context->deadline())), server_(server), context_(context) {}

  void start(std::shared_ptr<GrpcCall> self) {
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
  void finish_stream() override { end({}, grpc::Status::OK); }
  void refuse(const std::string& why) override {
    refuse_with({grpc::StatusCode::INVALID_ARGUMENT, why});
  }

  /// Ends it without a result, when the server closes.
  void abandon() {
    end({}, {grpc::StatusCode::CANCELLED, "the worker leaves the job"}, /*drop=*/true);
  }

 private:
  // ServedCall.
  void send_value(Result value) override {
    std::deque<grpc::ByteBuffer> messages = value.leaving.messages(value.reply);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || (waiting_.empty() && !busy_); });
    if (stopped_) {
      throw CallError("rpc.stream",
                      fmt::format("worker \"{}\" does not wait for more: it has stopped the call, "
                                  "ended or waited too long",
                                  caller()),
                      {.op = function()},
                      caller(),
                      CallOutcome::kUnknown);
    }
    std::ranges::move(messages, std::back_inserter(waiting_));
    advance(lock);
  }
  void end_with(Result result) override {
    end(result.leaving.messages(result.reply), grpc::Status::OK);
  }
  void give_up() override { end({}, grpc::Status::CANCELLED); }

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
      refuse(without_place(error.what()));
    }
  }

  void take() {
    if (!coming_) {
      std::optional<wire::Request> request = parse<wire::Request>(incoming_);
      if (!request) {
        refuse("the request cannot be read");
        return;
      }
      begin(*std::move(request));
    } else {
      coming_->take(incoming_);
    }
    incoming_.Clear();
    if (!coming_->is_whole()) {
      StartRead(&incoming_);
      return;
    }
    started_ = true;
    set_memories(std::move(*coming_).memories());
    const std::shared_ptr<ServedCall> self = shared_from_this();
    if (server_.dispatcher_->admit(self)) {
      server_.dispatcher_->queue(self);
    }
  }

  void begin(wire::Request request) {
    std::shared_ptr<SharedLine> line;
    if (!request.line().empty() && server_.landing_ != nullptr) {
      line = server_.landing_->line(request.line());
      if (request.brings_lane()) {
        server_.open_lane(request.line(), line);
      }
    }
    set_request(std::move(request), std::move(line));
    coming_.emplace(this->request().memories(), this->line(), server_.options_.largest_call_bytes);
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
    const std::shared_ptr<GrpcCall> self = std::move(self_);
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
    set_cancelled();
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
  std::shared_ptr<GrpcCall> self_{};                   ///< while gRPC has it

  // Of gRPC's reactions, which come one after the other.
  grpc::ByteBuffer incoming_{};
  std::optional<Coming> coming_{};
  bool started_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<grpc::ByteBuffer> waiting_{};
  grpc::ByteBuffer outgoing_{};
  std::optional<grpc::Status> status_{};
  bool busy_ = false;
  bool over_ = false;
  bool stopped_ = false;
};

/// Knows the calls that are under way, so that they end when the server closes.
class Server::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(Server& server) : server_(server) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    auto call = std::make_shared<GrpcCall>(server_, context);
    GrpcCall* const reactor = call.get();
    {
      const std::lock_guard lock(mutex_);
      calls_[reactor] = call;
    }
    reactor->start(std::move(call));
    return reactor;
  }

  void remove(GrpcCall* call) {
    const std::lock_guard lock(mutex_);
    calls_.erase(call);
  }

  void abandon_all() {
    std::vector<std::shared_ptr<GrpcCall>> all;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [reactor, call] : calls_) {
        if (std::shared_ptr<GrpcCall> alive = call.lock()) {
          all.push_back(std::move(alive));
        }
      }
    }
    for (const std::shared_ptr<GrpcCall>& call : all) {
      call->abandon();
    }
  }

 private:
  Server& server_;
  std::mutex mutex_;
  std::map<GrpcCall*, std::weak_ptr<GrpcCall>> calls_{};
};

void Server::GrpcCall::leave() {
  server_.service_->remove(this);
}

Server::Server(const ServerOptions& options, Functions functions)
    : options_(options),
      landing_(options.shared_memory_bytes > 0
                   ? std::make_unique<Landing>(options.shared_memory_bytes)
                   : nullptr),
      admission_("rpc.server", "call", options.token),
      dispatcher_(std::make_unique<Dispatcher>(
          std::move(functions), options.threads, options.most_queued_calls)),
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
  std::map<std::string, std::unique_ptr<LaneServer>> lanes;
  {
    const std::lock_guard lock(lanes_mutex_);
    lanes.swap(lanes_);
    closing_ = true;
  }
  for (const auto& [id, lane] : lanes) {
    lane->close();
  }
  service_->abandon_all();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
  server_->Wait();
  lanes.clear();  // waits for functions that still run
  dispatcher_.reset();
}

void Server::open_lane(const std::string& id, const std::shared_ptr<SharedLine>& line) {
  const std::lock_guard lock(lanes_mutex_);
  if (closing_ || lanes_.contains(id)) {
    return;
  }
  std::erase_if(lanes_, [](const auto& lane) { return lane.second->is_finished(); });
  try {
    lanes_[id] = std::make_unique<LaneServer>(
        landing_->lane(id), line, *dispatcher_, options_.largest_call_bytes);
  } catch (const Error& error) {  // its calls come through the network stack then
    log::warn("[rpc.lane] a caller's lane does not open: {}", error.what());
    lanes_.erase(id);
  }
}

}  // namespace argosy::rpc
