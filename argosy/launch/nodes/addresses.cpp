#include "argosy/launch/nodes/addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"

namespace argosy::launch {
namespace {

constexpr const char* kWhere = "launch.nodes";

std::string to_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* raw = nullptr;
  if (address->sa_family == AF_INET) {
    raw = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    raw = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  return raw != nullptr && ::inet_ntop(address->sa_family, raw, text.data(), text.size()) != nullptr
             ? text.data()
             : "";
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

AddressList look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), "1", &hints, &list);
  if (error != 0) {
    throw ConfigError(kWhere,
                      fmt::format("host \"{}\" has no address: {}. Check the name, or give its "
                                  "address.",
                                  host,
                                  ::gai_strerror(error)));
  }
  return {list, ::freeaddrinfo};
}

}  // namespace

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::vector<std::string> local_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return found;
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && (entry->ifa_flags & IFF_UP) != 0) {
      found.push_back(to_text(entry->ifa_addr));
    }
  }
  std::erase(found, "");
  std::stable_partition(
      found.begin(), found.end(), [](const std::string& a) { return !is_loopback(a); });
  return found;
}

std::vector<std::string> resolve_host(const std::string& host) {
  const AddressList list = look_up(host);
  std::vector<std::string> found;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    std::string text = to_text(entry->ai_addr);
    if (!text.empty() && std::ranges::count(found, text) == 0) {
      found.push_back(std::move(text));
    }
  }
  std::stable_partition(found.begin(), found.end(), [](const std::string& a) {
    return a.find(':') == std::string::npos;
  });
  return found;
}

bool is_this_node(const std::string& host) {
  const std::vector<std::string> ours = local_addresses();
  return std::ranges::any_of(resolve_host(host), [&](const std::string& address) {
    return is_loopback(address) || std::ranges::count(ours, address) > 0;
  });
}

std::string source_address(const std::string& host) {
  const AddressList list = look_up(host);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    const os::UniqueFd fd(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (::connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 &&
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0) {
      return to_text(reinterpret_cast<const sockaddr*>(&own));
    }
    error = errno;
  }
  throw ConfigError(kWhere,
                    fmt::format("no route leads to {}: {}. Check the network, or name this node's "
                                "address with --host.",
                                host,
                                errno_message(error)));
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace argosy::launch
