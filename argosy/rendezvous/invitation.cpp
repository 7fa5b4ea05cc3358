#include "argosy/rendezvous/invitation.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/random.h"
#include "argosy/rendezvous/endpoint.h"
#include "argosy/rendezvous/hosted_store.h"
#include "argosy/rendezvous/store_client.h"

namespace argosy::rendezvous {
namespace {

/// An invitation: "argosy-store-1 host:port secret".
constexpr std::string_view kForm = "argosy-store-1";

/// The address of this host as the other ranks reach it, and the interface to listen on.
struct Own {
  std::string address{};
  std::string interface {};
};

/// Who hosts need not be on `towards` itself, and where it is, its way there may be the loopback.
Own own_address(const InvitationOptions& options) {
  if (options.towards.empty() && !options.interface.empty()) {
    const std::string address =
        os::is_address(options.interface)
            ? options.interface
            : os::interface_address(options.interface).or_throw<RendezvousError>(options.where);
    return {.address = address, .interface = address};
  }
  if (options.towards.empty()) {
    const std::vector<std::string> all = os::local_addresses();
    return {.address = all.empty() ? "127.0.0.1" : all.front(), .interface = "0.0.0.0"};
  }
  const std::string source =
      os::source_address(options.towards).or_throw<RendezvousError>(options.where);
  if (!os::is_loopback(source)) {
    return {.address = source, .interface = source};
  }
  // A host's own name often leads to the loopback there, but not elsewhere.
  const bool only_here = os::is_loopback(options.towards) || options.towards == "localhost";
  return {.address = options.towards, .interface = only_here ? source : "0.0.0.0"};
}

/// What an invitation says.
struct Left {
  Endpoint at{};
  std::string token{};
};
Left parse(const InvitationOptions& options, const std::string& said) {
  const std::vector<std::string> words = strings::split(said, ' ');
  if (words.size() != 3 || words[0] != kForm) {
    throw RendezvousError(options.where,
                          fmt::format("rank 0 left \"{}\" in {}: expected \"{} host:port secret\". "
                                      "All ranks need one version of Argosy.",
                                      said,
                                      options.foreign,
                                      kForm));
  }
  return {.at = parse_endpoint(options.where, "rank 0's store", words[1]),
          .token = options.token.empty() ? words[2] : options.token};
}

}  // namespace

OpenHouse invite(const InvitationOptions& options) {
  // Where the user gave no secret, whoever may read the foreign store may read ours.
  const bool given = !options.token.empty();
  const std::string token = given ? options.token : os::random_hex(16);
  const Own own = own_address(options);
  HostedStore hosted = host_store(
      {.host = own.interface, .token = token, .tls = make_tls(options.tls, options.token)});
  return {.store = std::move(hosted.store),
          .invitation = fmt::format(
              "{} {} {}", kForm, os::host_port(own.address, hosted.port), given ? "given" : token)};
}

std::shared_ptr<Store> follow(const InvitationOptions& options,
                              const std::function<std::string()>& read,
                              const Deadline& deadline) {
  constexpr std::chrono::seconds kOneTry{1};
  constexpr std::chrono::seconds kPatience{3};
  std::optional<Deadline::Clock::time_point> refused_since;
  const Tls tls = make_tls(options.tls, options.token);
  while (true) {
    const Left left = parse(options, read());
    try {
      return connect_store(
          left.at.host, left.at.port, left.token, deadline.sooner(Deadline::after(kOneTry)), tls);
    } catch (const RefusedError&) {
      // What a former process has left may lead to a stranger: that is over soon.
      refused_since = refused_since.value_or(Deadline::Clock::now());
      if (deadline.expired() || Deadline::Clock::now() - *refused_since > kPatience) {
        throw;
      }
    } catch (const RendezvousError&) {
      if (deadline.expired()) {
        throw;
      }
    }
  }
}

}  // namespace argosy::rendezvous
