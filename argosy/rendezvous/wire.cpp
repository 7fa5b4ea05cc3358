#include "argosy/rendezvous/wire.h"

#include <absl/synchronization/mutex.h>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <latch>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/os/fd.h"

namespace argosy::rendezvous::wire {
namespace {

void to_our_log(gpr_log_func_args* line) {
  log::debug("grpc: {}", line->message);
}

std::string grpc_name(const addrinfo& info, uint16_t port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (info.ai_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(info.ai_addr);
    inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    return fmt::format("ipv4:{}:{}", text.data(), port);
  }
  const auto* address = reinterpret_cast<const sockaddr_in6*>(info.ai_addr);
  inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size());
  return fmt::format("ipv6:[{}]:{}", text.data(), port);
}

// "[rendezvous.add] key ..." -> "key ...": the client puts its own operation in front.
std::string without_brackets(const std::string& text) {
  const size_t end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

/// gRPC waits for ever, and deaf to signals, for a thread that it does not get.
void require_threads() {
  constexpr size_t kThreads = 16;
  std::latch go(1);
  std::vector<std::thread> threads;
  std::string why;
  try {
    while (threads.size() < kThreads) {
      threads.emplace_back([&go] { go.wait(); });
    }
  } catch (const std::system_error& error) {
    why = error.code().message();
  }
  go.count_down();
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (!why.empty()) {
    throw RendezvousError(
        "rendezvous.threads",
        fmt::format("of {} threads that gRPC needs, {} can be made ({}). Raise the limit of this "
                    "user's processes (ulimit -u; threads count), or the cgroup's pids.max",
                    kThreads,
                    threads.size(),
                    why));
  }
}

// With TLS both sides show a certificate. Without TLS neither does, and nothing is encrypted.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const Tls& tls) {
  if (!tls.on()) {
    return grpc::InsecureServerCredentials();
  }
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls.authority;
  options.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Tls& tls) {
  if (!tls.on()) {
    return grpc::InsecureChannelCredentials();
  }
  return grpc::SslCredentials({.pem_root_certs = tls.authority,
                               .pem_private_key = tls.key,
                               .pem_cert_chain = tls.certificate});
}

grpc::ChannelArguments channel_arguments(const Tls& tls,
                                         const std::string& host,
                                         int largest_message_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(largest_message_bytes);
  arguments.SetMaxSendMessageSize(largest_message_bytes);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kLargestMetadataBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // ranks talk to each other, never by a proxy
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);     // an add must not happen twice
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // one server, one connection
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // limit of one connection attempt
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(kKeepaliveTime.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(kKeepaliveTimeout.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  if (tls.on()) {
    arguments.SetSslTargetNameOverride(tls.name.empty() ? host : tls.name);
  }
  return arguments;
}

// gRPC takes several addresses of one family, "ipv4:a:1,b:1", and tries them in turn.
std::string one_target(const std::vector<std::string>& addresses) {
  std::string target = addresses.front();
  const std::string family = target.substr(0, 5);
  for (size_t i = 1; i < addresses.size(); ++i) {
    if (addresses[i].starts_with(family)) {
      target += "," + addresses[i].substr(family.size());
    }
  }
  return target;
}

}  // namespace

void prepare_grpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    require_threads();
    if (!env::get("GRPC_VERBOSITY")) {
      gpr_set_log_function(to_our_log);
    }
    // Debian's Abseil keeps a graph of all of gRPC's locks and would abort the process for an order
    // that might deadlock. That costs each lock, and no job should end for it.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    grpc_init();
  });
}

Result<std::vector<std::string>> grpc_addresses(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (code != 0) {
    return Failure{fmt::format("cannot resolve host \"{}\": {}",
                               host,
                               code == EAI_SYSTEM ? errno_message(errno) : gai_strerror(code))};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, freeaddrinfo);
  std::vector<std::string> names;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
      if (one->ai_family == family) {
        names.push_back(grpc_name(*one, port));
      }
    }
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::shared_ptr<grpc::Channel> make_channel(const std::vector<std::string>& addresses,
                                            const Tls& tls,
                                            const std::string& host,
                                            int largest_message_bytes) {
  return grpc::CreateCustomChannel(one_target(addresses),
                                   channel_credentials(tls),
                                   channel_arguments(tls, host, largest_message_bytes));
}

void sign(grpc::ClientContext& context, const std::string& token) {
  context.AddMetadata(kProtocolKey, std::to_string(kProtocolVersion));
  if (!token.empty()) {
    context.AddMetadata(kTokenKey, token);
  }
}

gpr_timespec to_grpc(const Deadline& deadline) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(deadline.remaining().count(), GPR_TIMESPAN));
}

void configure(grpc::ServerBuilder& builder, int largest_message_bytes) {
  builder.SetMaxReceiveMessageSize(largest_message_bytes);
  builder.SetMaxSendMessageSize(largest_message_bytes);
  // gRPC's default would let a second server share the port, and half of the calls reach it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kLargestMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(kKeepaliveTime.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(kKeepaliveTimeout.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(kHandshakeTimeout.count()));
}

void add_port(grpc::ServerBuilder& builder, const std::string& address, const Tls& tls, int* port) {
  // A server takes "10.0.0.1:29500" where a client takes "ipv4:10.0.0.1:29500".
  builder.AddListeningPort(
      address.substr(std::string_view("ipv4:").size()), server_credentials(tls), port);
}

int listen_error(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) {
    return EADDRNOTAVAIL;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, freeaddrinfo);
  const os::UniqueFd fd(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0 || listen(fd.get(), 1) != 0) {
    return errno;
  }
  return 0;
}

grpc::Status to_status(const std::exception& error) {
  constexpr size_t kLongestText = 4096;
  const std::string text = without_brackets(error.what()).substr(0, kLongestText);
  if (dynamic_cast<const UsageError*>(&error) != nullptr) {
    return {grpc::StatusCode::INVALID_ARGUMENT, text};
  }
  if (dynamic_cast<const RendezvousError*>(&error) != nullptr) {
    return {grpc::StatusCode::ABORTED, text};
  }
  return {grpc::StatusCode::INTERNAL, text};
}

void throw_status(const grpc::Status& status, std::string_view op, const std::string& store) {
  const std::string where = fmt::format("rendezvous.{}", op);
  const std::string text = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      throw UsageError(where, text);
    case grpc::StatusCode::ABORTED:
      throw RendezvousError(where, fmt::format("{} (store {})", text, store));
    case grpc::StatusCode::UNAUTHENTICATED:
      throw RefusedError(
          where,
          fmt::format("the store {} refused this process: {}. Start all ranks with the "
                      "ARGOSY_TOKEN of their job.",
                      store,
                      text));
    case grpc::StatusCode::FAILED_PRECONDITION:
      throw RefusedError(where,
                         fmt::format("the store {} speaks another version: {}. Use one version "
                                     "of Argosy on all ranks.",
                                     store,
                                     text));
    case grpc::StatusCode::UNIMPLEMENTED:
      throw RefusedError(where,
                         fmt::format("what listens at {} is no store of Argosy's, or of another "
                                     "version ({}). Check host and port.",
                                     store,
                                     text));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      throw TimeoutError(where,
                         fmt::format("the store {} did not answer in time. See whether its process "
                                     "is stopped or its machine overloaded.",
                                     store),
                         {.op = fmt::format("store.{}", op)});
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      throw RendezvousError(where,
                            fmt::format("lost the store {}: its process ended or the connection "
                                        "broke ({}).",
                                        store,
                                        text));
    default:
      throw RendezvousError(where,
                            fmt::format("the store {} failed: {} (gRPC code {}).",
                                        store,
                                        text,
                                        static_cast<int>(status.error_code())));
  }
}

}  // namespace argosy::rendezvous::wire
