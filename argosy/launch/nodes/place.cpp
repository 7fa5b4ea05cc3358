#include "argosy/launch/nodes/place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/os/addresses.h"

namespace argosy::launch {
namespace {

bool is_this_node(const std::string& host) {
  return os::is_this_host(host).or_throw<ConfigError>("launch.nodes");
}

/// The entry of --ips that is this node; nullopt: there is no such list.
std::optional<std::string> own_entry(const NodeOptions& options) {
  if (options.ips.empty()) {
    return std::nullopt;
  }
  const auto own = std::ranges::find_if(options.ips, is_this_node);
  if (own == options.ips.end()) {
    throw ConfigError("launch.nodes",
                      fmt::format("none of --ips {} is an address of this node, which has {}. Name "
                                  "the one that the others know it by.",
                                  fmt::join(options.ips, ","),
                                  fmt::join(os::local_addresses(), ", ")));
  }
  return *own;
}

/// Debian's /etc/hosts gives a host's own name a loopback address.
void refuse_hidden_host(const NodeOptions& options, const std::string& address) {
  if (os::is_loopback(address) && options.meet_host != address &&
      options.meet_host != "localhost") {
    throw ConfigError(
        "launch.nodes",
        fmt::format("the meeting place \"{}\" is {} on this node, where no other node "
                    "can reach it (see /etc/hosts). Give an address: this node has {}.",
                    options.meet_host,
                    address,
                    fmt::join(os::local_addresses(), ", ")));
  }
}

}  // namespace

Place find_place(const NodeOptions& options, const std::string& token) {
  Place place{.meeting = {.nodes = options.nodes,
                          .host = options.meet_host,
                          .port = options.meet_port,
                          .bind = options.bind,
                          .token = token,
                          .expected = options.ips,
                          .timeout = options.timeout,
                          .keep_alive = options.keep_alive},
              .wanted_rank = options.node_rank};
  const std::optional<std::string> listed = own_entry(options);
  Meeting& meeting = place.meeting;
  meeting.hosts = options.node_rank >= 0 ? options.node_rank == 0
                  : listed               ? *listed == options.ips.front()
                                         : is_this_node(options.meet_host);
  meeting.may_join = meeting.hosts && options.node_rank < 0 && !listed;
  if (meeting.hosts) {
    meeting.host =
        os::resolve_host(options.meet_host).or_throw<ConfigError>("launch.nodes").front();
    refuse_hidden_host(options, meeting.host);
    place.wanted_rank = 0;
  }
  if (!meeting.hosts) {
    // Debian gives a host's own name a loopback address; a copied /etc/hosts gives it another's.
    const auto resolved = os::resolve_host(options.meet_host);
    if (resolved.ok() && !resolved->empty()) {  // else it may come to be known later
      refuse_hidden_host(options, resolved->front());
    }
  }
  const Result<bool> own =
      options.address.empty() ? Result<bool>(true) : os::is_this_host(options.address);
  if (own.ok() && !*own) {
    place.warning = fmt::format(
        "--host {} is no address of this node, which has {}: right only where the others reach it "
        "there all the same (NAT)",
        options.address,
        fmt::join(os::local_addresses(), ", "));
  }
  const std::string by_interface =
      options.interface.empty()
          ? ""
          : os::interface_address(options.interface).or_throw<ConfigError>("launch.nodes");
  place.address = !options.address.empty() ? options.address
                  : !by_interface.empty()  ? by_interface
                  : listed                 ? *listed
                  : meeting.hosts
                      ? meeting.host
                      : os::source_address(options.meet_host).or_throw<Error>("launch.nodes");
  return place;
}

}  // namespace argosy::launch
