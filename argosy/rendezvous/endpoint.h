#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argosy::rendezvous {

struct Endpoint {
  std::string host{};
  uint16_t port = 0;
};

/// Reads "host:port" or "[::1]:port". Errors: ConfigError(`where`) naming `what` ("PADDLE_MASTER").
[[nodiscard]] Endpoint parse_endpoint(std::string_view where,
                                      std::string_view what,
                                      std::string_view text);
[[nodiscard]] uint16_t parse_port(std::string_view where,
                                  std::string_view what,
                                  std::string_view text);

}  // namespace argosy::rendezvous
