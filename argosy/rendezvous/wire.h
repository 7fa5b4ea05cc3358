#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/base/result.h"
#include "argosy/rendezvous/tls.h"

/// What all gRPC connections of a job agree upon, and the statuses of its store. Internal to the
/// rooms that speak gRPC.
namespace argosy::rendezvous::wire {

/// Raise it with every change that an older peer would misread.
inline constexpr int kProtocolVersion = 1;
inline constexpr const char* kProtocolKey = "argosy-protocol";
inline constexpr const char* kTokenKey = "argosy-token-bin";  ///< "-bin": gRPC takes any bytes

/// It exceeds the largest value with its key. It also limits replies that list keys.
inline constexpr int kLargestMessageBytes = 32 << 20;
/// Leaves room for an error text with a key in it. gRPC's default is 8 KiB for all headers
/// together.
inline constexpr int kLargestMetadataBytes = 64 << 10;

/// A silent connection is probed after kKeepaliveTime and given up kKeepaliveTimeout later, so a
/// vanished machine or a stopped process is noticed within 15 s. The end of a process is noticed at
/// once, because the kernel closes its connection.
inline constexpr std::chrono::milliseconds kKeepaliveTime{5000};
inline constexpr std::chrono::milliseconds kKeepaliveTimeout{10000};

/// A connection that makes no first call within this time is closed.
inline constexpr std::chrono::milliseconds kHandshakeTimeout{20000};

/// Prepares gRPC. Call it before any use of gRPC; further calls are cheap.
///
/// It keeps gRPC's own lines off the terminal unless GRPC_VERBOSITY is set, and makes them debug
/// lines of our log. It also keeps gRPC initialised until the process ends: the clean-up after the
/// last channel may wait 10 s for a poller that large messages leave behind (seen in 1.51).
void prepare_grpc();

/// Returns gRPC's name of every address of `host`, IPv4 first: {"ipv4:10.0.0.1:29500"}. Asks the
/// system's resolver, because gRPC's knows no nsswitch and gives no clear errors.
[[nodiscard]] Result<std::vector<std::string>> grpc_addresses(const std::string& host,
                                                              uint16_t port);

/// Returns a channel to the first family of `addresses`, which are those of `host`. It goes through
/// no proxy and retries no call, for an add must not happen twice.
[[nodiscard]] std::shared_ptr<grpc::Channel> make_channel(
    const std::vector<std::string>& addresses,
    const Tls& tls,
    const std::string& host,
    int largest_message_bytes = kLargestMessageBytes);
/// Adds what Admission asks for.
void sign(grpc::ClientContext& context, const std::string& token);
[[nodiscard]] gpr_timespec to_grpc(const Deadline& deadline);

/// Sets what all servers of a job have in common.
void configure(grpc::ServerBuilder& builder, int largest_message_bytes = kLargestMessageBytes);
/// Lets the server listen at one of grpc_addresses(). `port`: see ServerBuilder.
void add_port(grpc::ServerBuilder& builder, const std::string& address, const Tls& tls, int* port);
/// gRPC does not say why it cannot listen: tries it to learn errno. 0: it would work now.
[[nodiscard]] int listen_error(const std::string& host, uint16_t port);

/// Returns our exception as a status, which throw_status() turns back. The text loses what a header
/// cannot carry.
[[nodiscard]] grpc::Status to_status(const std::exception& error);
/// Throws the exception that `status` (not ok) stands for: UsageError, RendezvousError or
/// TimeoutError under "rendezvous.<op>". The message names `store` when the connection failed.
[[noreturn]] void throw_status(const grpc::Status& status,
                               std::string_view op,
                               const std::string& store);

}  // namespace argosy::rendezvous::wire
