#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>
#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/result.h"
#include "argosy/rendezvous/tls.h"

/// What client and server of the gRPC store agree on. Internal to the room.
namespace argosy::rendezvous::wire {

/// Raised by every change that an older peer would misread.
inline constexpr int kProtocolVersion = 1;
inline constexpr const char* kProtocolKey = "argosy-protocol";
inline constexpr const char* kTokenKey = "argosy-token-bin";  ///< "-bin": gRPC takes any bytes

/// Larger than the largest value with its key; replies that list keys share it.
inline constexpr int kLargestMessageBytes = 32 << 20;
/// Room for an error text or a key in it; gRPC's default of 8 KiB counts all headers together.
inline constexpr int kLargestMetadataBytes = 64 << 10;

/// A silent connection is asked for a sign of life after kKeepaliveTime and given up
/// kKeepaliveTimeout later: a vanished machine or a stopped process is noticed within 15 s.
/// (A process that ends is noticed at once: the kernel closes its connection.)
inline constexpr std::chrono::milliseconds kKeepaliveTime{5000};
inline constexpr std::chrono::milliseconds kKeepaliveTimeout{10000};

/// A connection that does not get as far as its first call within this time is closed.
inline constexpr std::chrono::milliseconds kHandshakeTimeout{20000};

/// Both sides show a certificate; TLS off: neither, and nothing is encrypted.
[[nodiscard]] std::shared_ptr<grpc::ServerCredentials> server_credentials(const Tls& tls);
[[nodiscard]] std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Tls& tls);

/// Call before any use of gRPC; cheap when called again.
///
/// Keeps gRPC's own lines off the terminal unless GRPC_VERBOSITY is set: they become debug lines of
/// our log. And keeps gRPC initialised until the process ends: its clean-up, done when the last
/// channel goes, may wait 10 s for a poller that large messages leave behind (seen in 1.51).
void prepare_grpc();

/// gRPC's name of every address of `host`, IPv4 first: {"ipv4:10.0.0.1:29500"}.
/// The system's resolver is asked, not gRPC's, which knows neither nsswitch nor clear errors.
[[nodiscard]] Result<std::vector<std::string>> grpc_addresses(const std::string& host,
                                                              uint16_t port);

/// An exception of ours as a status and back. The text loses what a header cannot carry.
[[nodiscard]] grpc::Status to_status(const std::exception& error);
/// Throws what `status` (not ok) stands for: UsageError, RendezvousError or TimeoutError under
/// "rendezvous.<op>"; `store` is named where the connection is the trouble.
[[noreturn]] void throw_status(const grpc::Status& status,
                               std::string_view op,
                               const std::string& store);

}  // namespace argosy::rendezvous::wire
