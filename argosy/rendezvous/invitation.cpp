#include "argosy/rendezvous/invitation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/random.h"
#include "argosy/rendezvous/endpoint.h"
#include "argosy/rendezvous/hosted_store.h"
#include "argosy/rendezvous/proof.h"
#include "argosy/rendezvous/store_client.h"

namespace argosy::rendezvous {
namespace {

/// An invitation: "argosy-store-2 host:port secret". Where the user gave a secret, the last word is
/// "proof:" and a proof of it for the first two: nobody else can send a rank, and its token, to
/// another place.
constexpr std::string_view kForm = "argosy-store-2";
constexpr std::string_view kProof = "proof:";

std::string proof_for(std::string_view token, std::string_view place) {
  const std::string proof = proof_of(token, fmt::format("{} {}", kForm, place));
  const std::vector<unsigned char> bytes(proof.begin(), proof.end());
  return fmt::format("{}{:02x}", kProof, fmt::join(bytes, ""));
}

/// The address of this host as the other ranks reach it, and the interface to listen on.
struct Own {
  std::string address{};
  std::string interface {};
};

std::string own_interface(const InvitationOptions& options) {
  return os::is_address(options.interface)
             ? options.interface
             : os::interface_address(options.interface).or_throw<RendezvousError>(options.where);
}

/// Who hosts need not be on `towards` itself, and where it is, its way there may be the loopback.
Own own_address(const InvitationOptions& options) {
  if (options.towards.empty() && !options.interface.empty()) {
    const std::string address = own_interface(options);
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
  if (os::is_loopback(options.towards) || options.towards == "localhost") {
    return {.address = options.towards, .interface = source};
  }
  return {.address = options.towards,
          .interface = options.interface.empty() ? "0.0.0.0" : own_interface(options)};
}

/// What an invitation says.
struct Left {
  std::string place{};   ///< "host:port"
  std::string secret{};  ///< the store's, or what proves the place
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
  return {.place = words[1], .secret = words[2]};
}

/// The token to show there.
std::string checked_token(const InvitationOptions& options, const Left& left) {
  const bool proven = left.secret.starts_with(kProof);
  if (options.token.empty() && !proven) {
    return left.secret;
  }
  if (!options.token.empty() &&
      strings::equal_constant_time(left.secret, proof_for(options.token, left.place))) {
    return options.token;
  }
  throw RefusedError(options.where,
                     fmt::format("rank 0 invites to {}, in {}, with {}, and this rank has {}. All "
                                 "ranks need the same ARGOSY_TOKEN, or none.",
                                 left.place,
                                 options.foreign,
                                 proven ? "another token" : "none",
                                 options.token.empty() ? "none" : "one"));
}

}  // namespace

OpenHouse invite(const InvitationOptions& options) {
  // Where the user gave no secret, whoever may read the foreign store may read ours.
  const bool given = !options.token.empty();
  const std::string token = given ? options.token : os::random_hex(16);
  const Own own = own_address(options);
  HostedStore hosted = host_store(
      {.host = own.interface, .token = token, .tls = make_tls(options.tls, options.token)});
  const std::string at = os::host_port(own.address, hosted.port);
  return {.store = std::move(hosted.store),
          .invitation = fmt::format("{} {} {}", kForm, at, given ? proof_for(token, at) : token)};
}

std::shared_ptr<Store> follow(const InvitationOptions& options,
                              const std::function<std::string()>& read,
                              const Deadline& deadline) {
  constexpr std::chrono::seconds kOneTry{1};
  constexpr std::chrono::milliseconds kPause{20};
  constexpr std::chrono::seconds kPatience{3};
  std::optional<Deadline> patience;
  std::exception_ptr refusal;
  const Tls tls = make_tls(options.tls, options.token);
  while (true) {
    Left left;
    try {
      left = parse(options, read());
    } catch (const TimeoutError&) {
      if (refusal) {  // which says more
        std::rethrow_exception(refusal);
      }
      throw;
    }
    const Endpoint at = parse_endpoint(options.where, "rank 0's store", left.place);
    try {
      return connect_store(at.host,
                           at.port,
                           checked_token(options, left),
                           deadline.sooner(Deadline::after(kOneTry)),
                           tls);
    } catch (const RefusedError&) {
      // What a former process has left may lead to a stranger: that is over soon.
      patience = patience.value_or(deadline.sooner(Deadline::after(kPatience)));
      if (patience->expired()) {
        throw;
      }
      refusal = std::current_exception();
      // A foreign store tells of no change, and read() returns at once what lies there.
      std::this_thread::sleep_for(std::min(kPause, deadline.remaining()));
    } catch (const RendezvousError&) {
      if (deadline.expired()) {
        throw;
      }
    }
  }
}

}  // namespace argosy::rendezvous
