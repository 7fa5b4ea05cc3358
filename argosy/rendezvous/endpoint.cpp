#include "argosy/rendezvous/endpoint.h"

#include <fmt/format.h>

#include <optional>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::rendezvous {

uint16_t parse_port(std::string_view where, std::string_view what, std::string_view text) {
  const std::optional<int64_t> port = strings::parse_int(text);
  if (!port || *port < 1 || *port > 65535) {
    throw ConfigError(where, fmt::format("{}={}: expected a port from 1 to 65535.", what, text));
  }
  return static_cast<uint16_t>(*port);
}

Endpoint parse_endpoint(std::string_view where, std::string_view what, std::string_view text) {
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    host = "";  // an IPv6 address without brackets: where would its port begin?
  }
  if (host.empty() || host.find_first_of(" \t/,") != std::string_view::npos) {
    throw ConfigError(where,
                      fmt::format("{}={}: expected host:port, for example 10.0.0.1:29500 or "
                                  "[fd00::1]:29500.",
                                  what,
                                  text));
  }
  return {.host = std::string(host), .port = parse_port(where, what, text.substr(colon + 1))};
}

}  // namespace argosy::rendezvous
