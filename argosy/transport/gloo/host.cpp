#include "argosy/transport/gloo/host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

namespace argosy::transport {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool is_loopback(const sockaddr_in& address) {
  return (ntohl(address.sin_addr.s_addr) >> 24) == 127;
}

std::string in_digits(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

}  // namespace

std::string loopback_id() {
  std::error_code ignored;
  return first_line("/proc/sys/kernel/random/boot_id") + " " +
         std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

std::string host_of(std::string_view store) {
  const size_t scheme = store.find("://");
  if (scheme == std::string_view::npos || store.substr(0, scheme) == "file") {
    return {};
  }
  store.remove_prefix(scheme + 3);
  store = store.substr(0, store.find_first_of("#/ "));
  return std::string(store.substr(0, store.find_last_of(':')));
}

// Connecting a UDP socket sends nothing.
std::string source_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (host.empty() || ::getaddrinfo(host.c_str(), "9", &hints, &found) != 0) {
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in mine{};
  socklen_t length = sizeof(mine);
  const bool ok = fd >= 0 && ::connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                  ::getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &length) == 0;
  if (fd >= 0) {
    ::close(fd);
  }
  return ok && !is_loopback(mine) ? in_digits(mine) : std::string();
}

namespace {

std::string first_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET &&
        (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0) {
      return in_digits(*reinterpret_cast<const sockaddr_in*>(entry->ifa_addr));
    }
  }
  return {};
}

}  // namespace

std::string choose_address(const HostCard& mine,
                           const std::vector<HostCard>& others,
                           const std::function<std::string(const std::string&)>& route) {
  const auto is_elsewhere = [&](const HostCard& card) { return card.loopback != mine.loopback; };
  if (std::none_of(others.begin(), others.end(), is_elsewhere)) {
    return "127.0.0.1";
  }
  if (!mine.address.empty()) {
    return mine.address;
  }
  for (const HostCard& other : others) {
    if (is_elsewhere(other) && !other.address.empty()) {
      if (std::string address = route(other.address); !address.empty()) {
        return address;
      }
    }
  }
  return first_address();
}

}  // namespace argosy::transport
