#include "argosy/rendezvous/store_client.h"

#include <fmt/format.h>
#include <grpcpp/channel.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/os/addresses.h"
#include "argosy/rendezvous/limits.h"
#include "argosy/rendezvous/presence_stream.h"
#include "argosy/rendezvous/wire.h"

namespace argosy::rendezvous {
namespace {

using std::chrono::milliseconds;
using Stub = wire::StoreService::Stub;

/// Who is called and as whom.
struct Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<Stub> stub;
  std::string token;
  std::string name;  ///< "grpc://10.0.0.1:29500"

  template <typename Request, typename Reply>
  grpc::Status try_call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                        const Request& request,
                        Reply& reply,
                        const Deadline& deadline) const {
    grpc::ClientContext context;
    wire::sign(context, token);
    context.set_deadline(wire::to_grpc(deadline));
    return ((*stub).*method)(&context, request, &reply);
  }

  template <typename Request, typename Reply>
  Reply call(std::string_view op,
             grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
             const Request& request,
             const Deadline& deadline) const {
    Reply reply;
    const grpc::Status status = try_call(method, request, reply, deadline);
    if (!status.ok()) {
      wire::throw_status(status, op, name);
    }
    return reply;
  }
};

class GrpcPresence final : public Presence {
 public:
  explicit GrpcPresence(PresenceStream::Ptr stream) : stream_(std::move(stream)) {}
  ~GrpcPresence() override {
    if (!left_) {
      Presence::leave("");
    }
  }
  GrpcPresence(const GrpcPresence&) = delete;
  GrpcPresence& operator=(const GrpcPresence&) = delete;
  GrpcPresence(GrpcPresence&&) = delete;
  GrpcPresence& operator=(GrpcPresence&&) = delete;

  void note(const std::string& text) override { stream_->note(cut_note(text)); }
  void leave(const std::string& note, const Deadline& deadline) override {
    left_ = true;
    stream_->leave(cut_note(note), deadline);
  }

 private:
  const PresenceStream::Ptr stream_;
  std::atomic<bool> left_ = false;
};

class GrpcStore final : public Store {
 public:
  explicit GrpcStore(Connection connection) : connection_(std::move(connection)) {}

  void set(const std::string& key, const std::string& value, const Deadline& deadline) override {
    check_key("set", key);
    check_value("set", key, value);
    wire::SetRequest request;
    request.set_key(key);
    request.set_value(value);
    connection_.call("set", &Stub::Set, request, deadline);
  }

  std::string get(const std::string& key, const Deadline& deadline) override {
    check_key("get", key);
    wire::GetRequest request;
    request.set_key(key);
    wire::GetReply reply;
    wait_call("get", &Stub::Get, request, reply, {key}, deadline);
    return std::move(*reply.mutable_value());
  }

  void wait(const std::vector<std::string>& keys, const Deadline& deadline) override {
    check_keys("wait", keys);
    wire::WaitRequest request;
    request.mutable_keys()->Assign(keys.begin(), keys.end());
    wire::WaitReply reply;
    wait_call("wait", &Stub::Wait, request, reply, keys, deadline);
  }

  int64_t add(const std::string& key, int64_t amount, const Deadline& deadline) override {
    check_key("add", key);
    wire::AddRequest request;
    request.set_key(key);
    request.set_amount(amount);
    return connection_.call("add", &Stub::Add, request, deadline).sum();
  }

  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired,
                          const Deadline& deadline) override {
    check_key("compare_set", key);
    check_value("compare_set", key, desired);
    check_value("compare_set", key, expected);
    wire::CompareSetRequest request;
    request.set_key(key);
    request.set_expected(expected);
    request.set_desired(desired);
    return connection_.call("compare_set", &Stub::CompareSet, request, deadline).value();
  }

  bool check(const std::vector<std::string>& keys, const Deadline& deadline) override {
    check_keys("check", keys);
    wire::MissingRequest request;
    request.mutable_keys()->Assign(keys.begin(), keys.end());
    return connection_.call("check", &Stub::Missing, request, deadline).keys().empty();
  }

  bool remove(const std::string& key, const Deadline& deadline) override {
    check_key("remove", key);
    wire::RemoveRequest request;
    request.set_key(key);
    return connection_.call("remove", &Stub::Remove, request, deadline).existed();
  }

  std::vector<std::string> keys(const std::string& prefix, const Deadline& deadline) override {
    wire::KeysRequest request;
    request.set_prefix(prefix);
    const wire::KeysReply reply = connection_.call("keys", &Stub::Keys, request, deadline);
    return {reply.keys().begin(), reply.keys().end()};
  }

  std::unique_ptr<Presence> announce(const std::string& member, const Deadline& deadline) override {
    check_key("announce", member);
    auto context = std::make_unique<grpc::ClientContext>();
    wire::sign(*context, connection_.token);
    PresenceStream::Ptr stream(new PresenceStream(connection_.stub, std::move(context)));
    const grpc::Status status = stream->open(member, deadline);
    if (!status.ok()) {
      wire::throw_status(status, "announce", connection_.name);
    }
    return std::make_unique<GrpcPresence>(std::move(stream));
  }

  std::vector<Departure> departures(const std::string& prefix, const Deadline& deadline) override {
    wire::DeparturesRequest request;
    request.set_prefix(prefix);
    const wire::DeparturesReply reply =
        connection_.call("departures", &Stub::Departures, request, deadline);
    std::vector<Departure> found;
    for (const auto& one : reply.departures()) {
      found.push_back({.member = one.member(), .lost = one.lost(), .note = one.note()});
    }
    return found;
  }

  std::vector<Member> members(const std::string& prefix, const Deadline& deadline) override {
    wire::MembersRequest request;
    request.set_prefix(prefix);
    const wire::MembersReply reply = connection_.call("members", &Stub::Members, request, deadline);
    std::vector<Member> found;
    for (const auto& one : reply.members()) {
      found.push_back({.name = one.name(), .note = one.note()});
    }
    return found;
  }

  int64_t time_us(const Deadline& deadline) override {
    return connection_.call("time", &Stub::Hello, wire::HelloRequest(), deadline).time_us();
  }
  std::string describe() const override { return connection_.name; }

 private:
  // At the deadline a second short call asks which keys are missing; a server that does not answer
  // that one either is itself the trouble, and the error says so.
  template <typename Request, typename Reply>
  void wait_call(std::string_view op,
                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                 const Request& request,
                 Reply& reply,
                 const std::vector<std::string>& keys,
                 const Deadline& deadline) {
    const auto start = Deadline::Clock::now();
    const grpc::Status status = connection_.try_call(method, request, reply, deadline);
    if (status.ok()) {
      return;
    }
    if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
      wire::throw_status(status, op, connection_.name);
    }
    wire::MissingRequest question;
    question.mutable_keys()->Assign(keys.begin(), keys.end());
    wire::MissingReply answer;
    std::vector<std::string> missing;
    if (connection_.try_call(&Stub::Missing, question, answer, Deadline::after(milliseconds(500)))
            .ok()) {
      missing.assign(answer.keys().begin(), answer.keys().end());
      if (missing.empty()) {
        missing = keys;  // they came in this very moment, too late
      }
    }
    throw wait_timed_out(op, start, missing, connection_.name);
  }

  const Connection connection_;
};

/// Says hello until the server answers or the deadline passes; then says what stood in the way.
class Dialing {
 public:
  Dialing(std::string host, uint16_t port, const std::string& token, const Tls& tls)
      : host_(std::move(host)), port_(port), tls_(tls) {
    connection_.token = token;
    connection_.name = fmt::format("grpc://{}:{}", host_, port_);
  }

  Connection connect(const Deadline& deadline) {
    const auto start = Deadline::Clock::now();
    int attempts = 0;
    do {
      ++attempts;
      if (try_once(deadline)) {
        return std::move(connection_);
      }
    } while (!deadline.expired());
    if (!refusal_.empty()) {
      throw RefusedError("rendezvous.connect", refusal_);
    }
    throw RendezvousError("rendezvous.connect",
                          fmt::format("cannot reach the store at {}:{}: {} ({} attempts in {}). "
                                      "See whether the launcher or rank 0 runs there, whether it "
                                      "uses --tls{}, and whether a firewall is between.",
                                      host_,
                                      port_,
                                      last_error_,
                                      attempts,
                                      seconds_since(start),
                                      tls_.on() ? "" : ", which this process does not"));
  }

 private:
  bool try_once(const Deadline& deadline) {
    if (connection_.channel == nullptr && !make_channel()) {
      pause(deadline);
      return false;
    }
    wire::HelloReply reply;
    const grpc::Status status =
        connection_.try_call(&Stub::Hello, wire::HelloRequest(), reply, deadline);
    if (status.ok()) {
      return true;
    }
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
        status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
      wire::throw_status(status, "connect", connection_.name);
    }
    note_distrust(status);
    check_loopback(status);
    if (last_error_.empty() || status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      last_error_ = status.error_message();
    }
    if (!deadline.expired()) {
      // Until gRPC has tried again: it wakes this when the state of the channel changes.
      connection_.channel->WaitForStateChange(
          GRPC_CHANNEL_TRANSIENT_FAILURE,
          wire::to_grpc(deadline.sooner(Deadline::after(milliseconds(500)))));
    }
    return false;
  }

  /// A new network namespace has no loopback until somebody starts it; waiting starts none.
  void check_loopback(const grpc::Status& status) const {
    const bool unreachable =
        status.error_message().find("Network is unreachable") != std::string::npos;
    if (unreachable && (host_ == "localhost" || os::is_loopback(host_)) &&
        std::ranges::none_of(os::local_addresses(), os::is_loopback)) {
      throw RendezvousError("rendezvous.connect",
                            fmt::format("cannot reach the store at {}:{}: the loopback interface "
                                        "is down. Run on this machine, or in this container: ip "
                                        "link set lo up",
                                        host_,
                                        port_));
    }
  }

  /// Why the other side's certificate is not taken; "": that is not the trouble.
  [[nodiscard]] std::string why_not_trusted(const std::string& text) const {
    const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
    if (says("wrong version number")) {
      return "it does not use TLS, as this process does. Give all nodes the same --tls "
             "(ARGOSY_TLS)";
    }
    if (says("Peer name")) {
      return fmt::format(
          "its certificate does not bear the name \"{}\". Call it by a name that it bears, or say "
          "that one with --tls_name (ARGOSY_TLS_NAME)",
          tls_.name.empty() ? host_ : tls_.name);
    }
    return says("SSL_ERROR_SSL") ? "its certificate is not signed by the authority of this job, or "
                                   "not valid now. Give "
                                   "all nodes the same ARGOSY_TOKEN, or the same --tls_ca"
                                 : "";
  }

  // What either side shows does not change, but something else may have had the port for a moment:
  // it is asked once more.
  void note_distrust(const grpc::Status& status) {
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
      return;  // out of time: says nothing new
    }
    const std::string why = why_not_trusted(status.error_message());
    const bool again = !why.empty() && !refusal_.empty();
    refusal_ = why.empty() ? ""
                           : fmt::format("the store at {}:{} is not trusted: {} ({})",
                                         host_,
                                         port_,
                                         why,
                                         status.error_message());
    if (again) {
      throw RefusedError("rendezvous.connect", refusal_);
    }
  }

  // A name may not be known yet: containers get theirs late.
  bool make_channel() {
    const Result<std::vector<std::string>> addresses = wire::grpc_addresses(host_, port_);
    if (!addresses.ok() || addresses->empty()) {
      last_error_ = addresses.ok() ? "no address" : addresses.failure().what;
      return false;
    }
    connection_.channel = wire::make_channel(*addresses, tls_, host_);
    connection_.stub = wire::StoreService::NewStub(connection_.channel);
    return true;
  }

  static void pause(const Deadline& deadline) {
    std::this_thread::sleep_until(
        std::min(deadline.at(), Deadline::Clock::now() + milliseconds(200)));
  }

  const std::string host_;
  const uint16_t port_;
  const Tls& tls_;
  Connection connection_;
  std::string refusal_{};
  std::string last_error_;
};

}  // namespace

std::shared_ptr<Store> connect_store(const std::string& host,
                                     uint16_t port,
                                     const std::string& token,
                                     const Deadline& deadline,
                                     const Tls& tls) {
  ARGOSY_CHECK(!host.empty() && port != 0,
               "rendezvous.connect",
               "expected host and port, got \"{}\":{}",
               host,
               port);
  wire::prepare_grpc();
  return std::make_shared<GrpcStore>(Dialing(host, port, token, tls).connect(deadline));
}

}  // namespace argosy::rendezvous
