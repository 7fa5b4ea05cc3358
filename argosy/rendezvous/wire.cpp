#include "argosy/rendezvous/wire.h"

#include <absl/synchronization/mutex.h>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <netdb.h>

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
