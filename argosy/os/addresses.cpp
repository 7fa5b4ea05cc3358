#include "argosy/os/addresses.h"

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
#include <cstddef>
#include <memory>

#include "argosy/base/strings.h"
#include "argosy/os/fd.h"

namespace argosy::os {
namespace {

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

/// What the kernel would send from to `host`, an address. Connecting a UDP socket sends nothing.
Result<std::string> route_to(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), "1", &hints, &list); error != 0) {
    return Failure{fmt::format("resolve {}: {}", host, ::gai_strerror(error)), 0};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  const UniqueFd fd(::socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!fd || ::connect(fd.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return Failure::from_errno("no route leads to " + host, errno);
  }
  return to_text(reinterpret_cast<const sockaddr*>(&own));
}

}  // namespace

bool is_address(const std::string& host) {
  std::array<std::byte, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

bool is_ipv4(const std::string& address) {
  return address.find(':') == std::string::npos;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

namespace {

struct InterfaceAddress {
  std::string interface {};
  std::string address{};
};

/// Of interfaces that are up.
std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return found;
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    if (std::string address = to_text(entry->ifa_addr); !address.empty()) {
      found.push_back({entry->ifa_name, std::move(address)});
    }
  }
  return found;
}

}  // namespace

Result<std::string> interface_address(const std::string& name) {
  std::string others;
  std::string found;
  for (const InterfaceAddress& entry : interface_addresses()) {
    if (entry.interface != name) {
      others += fmt::format("{}{} {}", others.empty() ? "" : ", ", entry.interface, entry.address);
    } else if (found.empty() || (is_ipv4(entry.address) && !is_ipv4(found))) {
      found = entry.address;
    }
  }
  if (found.empty()) {
    return Failure{fmt::format("no interface \"{}\" with an address: there are {}",
                               name,
                               others.empty() ? "none" : others),
                   0};
  }
  return found;
}

std::vector<std::string> local_addresses() {
  std::vector<std::string> found;
  for (InterfaceAddress& entry : interface_addresses()) {
    found.push_back(std::move(entry.address));
  }
  std::stable_partition(
      found.begin(), found.end(), [](const std::string& a) { return !is_loopback(a); });
  return found;
}

Result<std::vector<std::string>> resolve_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    return Failure{fmt::format("host \"{}\" has no address: {}. Check the name, or give its "
                               "address",
                               host,
                               error == EAI_SYSTEM ? errno_message(errno) : ::gai_strerror(error)),
                   0};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  std::vector<std::string> found;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    std::string text = to_text(entry->ai_addr);
    if (!text.empty() && std::ranges::count(found, text) == 0) {
      found.push_back(std::move(text));
    }
  }
  std::stable_partition(found.begin(), found.end(), is_ipv4);
  return found;
}

Result<bool> is_this_host(const std::string& host) {
  Result<std::vector<std::string>> theirs = resolve_host(host);
  if (!theirs.ok()) {
    return std::move(theirs).failure();
  }
  const std::vector<std::string> ours = local_addresses();
  return std::ranges::any_of(*theirs, [&](const std::string& address) {
    return is_loopback(address) || std::ranges::count(ours, address) > 0;
  });
}

Result<std::string> source_address(const std::string& host) {
  Result<std::vector<std::string>> theirs = resolve_host(host);
  if (!theirs.ok()) {
    return std::move(theirs).failure();
  }
  Result<std::string> found = Failure::from_errno("no route leads to " + host, EADDRNOTAVAIL);
  for (const std::string& address : *theirs) {
    found = route_to(address);
    if (found.ok()) {
      break;
    }
  }
  return found;
}

std::string own_address_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  return ::getsockname(socket, generic, &size) == 0 ? to_text(generic) : "";
}

std::string peer_address_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  return ::getpeername(socket, generic, &size) == 0 ? to_text(generic) : "";
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string boot_id() {
  const Result<std::string> id = read_file("/proc/sys/kernel/random/boot_id");
  return id.ok() ? std::string(strings::trim(*id)) : "";
}

std::string host_port(const std::string& host, uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

}  // namespace argosy::os
