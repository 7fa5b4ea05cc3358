#include "argosy/ps/roles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/crash_handler.h"

namespace argosy::ps {
namespace {

std::string needed(const char* name) {
  const std::optional<std::string> value = env::get(name);
  if (!value) {
    throw ConfigError("ps.roles",
                      fmt::format("{} is not set, and a job with servers needs it. Start it with "
                                  "argosy launch --server_num N --worker_num M, or say who is who "
                                  "in TrainingOptions::roles",
                                  name));
  }
  return *value;
}

int number(const char* name, int least) {
  const std::string text = needed(name);
  const std::optional<int64_t> value = strings::parse_int(text);
  constexpr int64_t kMost = 1'000'000;
  if (!value || *value < least || *value > kMost) {
    throw ConfigError(
        "ps.roles", fmt::format("{}: expected a number from {} on, got \"{}\"", name, least, text));
  }
  return static_cast<int>(*value);
}

}  // namespace

bool Roles::are_set() {
  return env::get("PADDLE_PSERVERS_IP_PORT_LIST").has_value();
}

Roles Roles::from_environment() {
  os::install_crash_handler();  // a program with servers begins here
  Roles roles;
  const std::vector<std::string> servers =
      strings::split(needed("PADDLE_PSERVERS_IP_PORT_LIST"), ',');
  roles.servers = static_cast<int>(servers.size());
  roles.workers = number("PADDLE_TRAINERS_NUM", 1);
  roles.meeting = servers.front();
  roles.rank = env::get("ARGOSY_RANK") ? number("ARGOSY_RANK", 0) : -1;
  const std::string role = needed("TRAINING_ROLE");
  if (role == "TRAINER") {
    roles.index = number("PADDLE_TRAINER_ID", 0);
    if (roles.index >= roles.workers) {
      throw ConfigError(
          "ps.roles",
          fmt::format(
              "PADDLE_TRAINER_ID is {}, and PADDLE_TRAINERS_NUM {}", roles.index, roles.workers));
    }
    return roles;
  }
  if (role != "PSERVER") {
    throw ConfigError("ps.roles",
                      fmt::format("TRAINING_ROLE: expected PSERVER or TRAINER, got \"{}\"", role));
  }
  roles.is_server = true;
  const std::string own = needed("POD_IP") + ":" + needed("PADDLE_PORT");
  const auto found = std::ranges::find(servers, own);
  if (found == servers.end()) {
    throw ConfigError("ps.roles",
                      fmt::format("POD_IP and PADDLE_PORT are {}, which is not in "
                                  "PADDLE_PSERVERS_IP_PORT_LIST: {}",
                                  own,
                                  fmt::join(servers, ",")));
  }
  roles.index = static_cast<int>(found - servers.begin());
  return roles;
}

}  // namespace argosy::ps
