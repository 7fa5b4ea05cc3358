#include "argosy/rendezvous/host_card.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/fd.h"
#include "argosy/os/pidfd.h"
#include "argosy/os/random.h"

namespace argosy::rendezvous {

std::string loopback_id() {
  std::error_code ignored;
  return os::boot_id() + " " + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

/// A process that the others cannot watch has no neighbours: they would wait for it in shared
/// memory after it has died. Kernels before 5.3 and some sandboxes are like that.
std::string neighbourhood_id() {
  std::error_code ignored;
  const std::string users = std::filesystem::read_symlink("/proc/self/ns/user", ignored).string();
  const std::string alone = os::own_pidfd().ok() ? "" : " " + os::random_hex(8);
  return fmt::format("{} {} {}{}", loopback_id(), users, ::geteuid(), alone);
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

std::string source_address(const std::string& host) {
  const Result<std::string> found = os::source_address(host);
  const bool usable = found.ok() && os::is_ipv4(*found) && !os::is_loopback(*found);
  return usable ? *found : std::string();
}

namespace {

std::string first_address() {
  const std::vector<std::string> own = os::local_addresses();
  const auto first = std::ranges::find_if(
      own, [](const std::string& a) { return os::is_ipv4(a) && !os::is_loopback(a); });
  return first == own.end() ? std::string() : *first;
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

}  // namespace argosy::rendezvous
