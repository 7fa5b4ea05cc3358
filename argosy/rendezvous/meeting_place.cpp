#include "argosy/rendezvous/meeting_place.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/rendezvous/endpoint.h"

namespace argosy::rendezvous {
namespace {

/// "scheme://rest?rank=3&world_size=8", taken apart.
struct Method {
  std::string scheme{};
  std::string rest{};
  std::optional<int> rank{};
  std::optional<int> world_size{};
};

[[noreturn]] void malformed(const std::string& method, const std::string& why) {
  throw ConfigError("rendezvous.join",
                    fmt::format("method \"{}\": {}. Expected env://, tcp://host:port or "
                                "file:///path, the latter two with ?rank=R&world_size=N if wanted.",
                                method,
                                why));
}

Method parse_method(const std::string& text) {
  const size_t colon = text.find("://");
  if (colon == std::string::npos) {
    malformed(text, "no scheme");
  }
  Method method{.scheme = strings::to_lower(text.substr(0, colon))};
  const std::string rest = text.substr(colon + 3);
  const size_t question = rest.find('?');
  method.rest = rest.substr(0, question);
  if (question == std::string::npos) {
    return method;
  }
  for (const std::string& pair : strings::split(rest.substr(question + 1), '&')) {
    const size_t equals = pair.find('=');
    const std::string name = pair.substr(0, equals);
    const int64_t value =
        equals == std::string::npos ? -1 : strings::parse_int(pair.substr(equals + 1)).value_or(-1);
    if ((name != "rank" && name != "world_size") || value < 0 || value > INT32_MAX) {
      malformed(text, fmt::format("cannot use \"{}\"", pair));
    }
    (name == "rank" ? method.rank : method.world_size) = static_cast<int>(value);
  }
  return method;
}

// The option, the method's query or the environment, in this order.
int choose(const char* name, int option, const std::optional<int>& query, int environment) {
  if (option >= 0 && query && *query != option) {
    throw ConfigError(
        "rendezvous.join",
        fmt::format(
            "{}: the option says {}, the method's query {}. Give one.", name, option, *query));
  }
  return option >= 0 ? option : query.value_or(environment);
}

void place_by_environment(const JobEnvironment& environment, MeetingPlace& place) {
  if (!environment.store_host.empty()) {
    place.kind = MeetingPlace::Kind::kLauncher;
    place.host = environment.store_host;
    place.port = environment.store_port;
    return;
  }
  if (place.world_size == 1) {
    place.kind = MeetingPlace::Kind::kAlone;
    return;
  }
  if (environment.master_port == 0) {
    throw ConfigError(
        "rendezvous.join",
        fmt::format("env:// with {} ranks, but no place to meet: expected MASTER_ADDR "
                    "and MASTER_PORT. Set them, or use tcp://host:port.",
                    place.world_size));
  }
  place.kind = environment.master_port_is_torchruns ? MeetingPlace::Kind::kTorchrun
                                                    : MeetingPlace::Kind::kRankZero;
  place.host = environment.master_addr;
  place.port = environment.master_port;
}

}  // namespace

JobEnvironment environment_for(const JoinOptions& options, const Lookup& lookup) {
  const Method method = parse_method(options.method);
  const bool told =
      (options.rank >= 0 || method.rank) && (options.world_size >= 1 || method.world_size);
  return told && method.scheme != "env" ? read_identity(lookup) : read_environment(lookup);
}

MeetingPlace resolve(const JoinOptions& options, const JobEnvironment& environment) {
  const Method method = parse_method(options.method);
  MeetingPlace place;
  place.token = environment.token;
  place.tls = environment.tls;
  place.run_id = environment.run_id;
  const bool told = !environment.source.empty() || method.scheme == "env";
  place.rank = choose("rank", options.rank, method.rank, told ? environment.rank : -1);
  place.world_size = choose(
      "world_size", options.world_size, method.world_size, told ? environment.world_size : -1);
  if (place.rank < 0 || place.world_size < 1) {
    throw ConfigError("rendezvous.join",
                      fmt::format("\"{}\" needs rank and world_size: neither option, query nor "
                                  "environment (RANK, WORLD_SIZE) has both.",
                                  options.method));
  }
  if (place.rank >= place.world_size) {
    throw ConfigError("rendezvous.join",
                      fmt::format("rank {} of {}: expected a rank below world_size. Ranks count "
                                  "from 0.",
                                  place.rank,
                                  place.world_size));
  }
  if (method.scheme == "env") {
    if (!method.rest.empty()) {
      malformed(options.method,
                fmt::format("env:// takes nothing behind it, got \"{}\"", method.rest));
    }
    place_by_environment(environment, place);
  } else if (method.scheme == "tcp") {
    Endpoint endpoint = parse_endpoint("rendezvous.join", "tcp://", method.rest);
    place.kind = MeetingPlace::Kind::kRankZero;
    place.host = std::move(endpoint.host);
    place.port = endpoint.port;
  } else if (method.scheme == "file") {
    if (!method.rest.starts_with('/')) {
      malformed(options.method, "the path must be absolute, for ranks may run in other folders");
    }
    place.kind = MeetingPlace::Kind::kFile;
    place.path = method.rest;
  } else {
    malformed(options.method, fmt::format("unknown scheme \"{}\"", method.scheme));
  }
  return place;
}

}  // namespace argosy::rendezvous
