#include "argosy/rendezvous/store_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <openssl/crypto.h>

#include <memory>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/rendezvous/board_store.h"
#include "argosy/rendezvous/store_service.h"
#include "argosy/rendezvous/wire.h"

namespace argosy::rendezvous {
namespace {

/// `error`: 0 where there is no errno.
RendezvousError cannot_listen(const StoreServerOptions& options,
                              const std::string& why,
                              int error) {
  return RendezvousError(
      "rendezvous.listen",
      fmt::format("cannot listen on {}:{}: {}. {} Only the first node of a job listens: was node "
                  "rank 0, or rank 0, given twice?",
                  options.host,
                  options.port,
                  why,
                  error == EADDRNOTAVAIL
                      ? "Give an address that this machine has (ip address shows them)."
                      : "Choose another port, or end the process that has it (ss -ltnp)."));
}

class GrpcStoreServer final : public StoreServer {
 public:
  explicit GrpcStoreServer(const StoreServerOptions& options)
      : service_(board_, options.token), host_(options.host) {
    wire::prepare_grpc();
    const Result<std::vector<std::string>> addresses =
        wire::grpc_addresses(options.host, options.port);
    if (!addresses.ok() || addresses->empty()) {
      throw cannot_listen(
          options, addresses.ok() ? "no address" : addresses.failure().what, EADDRNOTAVAIL);
    }
    grpc::ServerBuilder builder;
    wire::configure(builder, wire::kLargestMessageBytes);
    wire::add_port(builder, addresses->front(), options.tls, &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) {
      const int error = wire::listen_error(options.host, options.port);
      throw cannot_listen(
          options, error == 0 ? "gRPC gave no reason" : errno_message(error), error);
    }
  }

  ~GrpcStoreServer() override {
    // Closing the board answers every waiting call and stream, so Shutdown has nothing to cancel
    // unless a client does not read its answer; that one is not waited for longer than a moment.
    board_->close();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
    server_->Wait();
  }
  GrpcStoreServer(const GrpcStoreServer&) = delete;
  GrpcStoreServer& operator=(const GrpcStoreServer&) = delete;
  GrpcStoreServer(GrpcStoreServer&&) = delete;
  GrpcStoreServer& operator=(GrpcStoreServer&&) = delete;

  uint16_t port() const override { return static_cast<uint16_t>(port_); }
  std::shared_ptr<Store> local() override {
    return board_store(board_, fmt::format("grpc://{}:{} (hosted here)", host_, port_));
  }
  bool wait_until_members_left(const Deadline& deadline) override {
    return service_.wait_until_members_left(deadline);
  }
  size_t waiting_calls() const override { return board_->waiting(); }

 private:
  const std::shared_ptr<Board> board_ = std::make_shared<Board>();
  StoreService service_;
  const std::string host_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::string library_versions() {
  return fmt::format(
      "gRPC {}, OpenSSL {}", grpc::Version(), OpenSSL_version(OPENSSL_VERSION_STRING));
}

std::unique_ptr<StoreServer> StoreServer::start(const StoreServerOptions& options) {
  return std::make_unique<GrpcStoreServer>(options);
}

}  // namespace argosy::rendezvous
