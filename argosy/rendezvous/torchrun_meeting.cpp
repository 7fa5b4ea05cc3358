#include "argosy/rendezvous/torchrun_meeting.h"

#include <fmt/format.h>

#include <chrono>
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
#include "argosy/rendezvous/tcp_store.h"

namespace argosy::rendezvous {
namespace {

/// What rank 0 leaves: "argosy-store-1 host:port secret".
constexpr std::string_view kForm = "argosy-store-1";

/// The address of this host as the other ranks reach it, and the interface to listen on.
struct Own {
  std::string address{};
  std::string interface {};
};

/// Rank 0 need not be on torchrun's own host, and where it is, its way there may be the loopback.
Own own_address(const std::string& torchrun) {
  const std::string source =
      os::source_address(torchrun).or_throw<RendezvousError>("rendezvous.torchrun");
  if (!os::is_loopback(source)) {
    return {.address = source, .interface = source};
  }
  // A host's own name often leads to the loopback there, but not elsewhere.
  const bool only_here = os::is_loopback(torchrun) || torchrun == "localhost";
  return {.address = torchrun, .interface = only_here ? source : "0.0.0.0"};
}

std::shared_ptr<Store> host(const MeetingPlace& place,
                            TcpStore& torchruns,
                            const std::string& key,
                            const Deadline& deadline) {
  // Where the user gave no secret, whoever may read torchrun's store may read ours.
  const bool given = !place.token.empty();
  const std::string token = given ? place.token : os::random_hex(16);
  const Own own = own_address(place.host);
  HostedStore hosted =
      host_store({.host = own.interface, .token = token, .tls = make_tls(place.tls, place.token)});
  torchruns.set(
      key,
      fmt::format(
          "{} {} {}", kForm, os::host_port(own.address, hosted.port), given ? "given" : token),
      deadline);
  return hosted.store;
}

/// What rank 0 has left. After a restart that may still be what its former process left: torchrun's
/// count of restarts, which could tell, differs between its nodes.
struct Left {
  Endpoint at{};
  std::string token{};
};
Left read(const MeetingPlace& place,
          TcpStore& torchruns,
          const std::string& key,
          const Deadline& deadline) {
  std::string said;
  try {
    said = torchruns.get(key, deadline);
  } catch (const TimeoutError& e) {
    throw TimeoutError("rendezvous.torchrun",
                       fmt::format("rank 0 did not come: {}", e.what()),
                       {.op = "join", .group = "world", .rank = place.rank, .peers = {0}});
  }
  const std::vector<std::string> words = strings::split(said, ' ');
  if (words.size() != 3 || words[0] != kForm) {
    throw RendezvousError("rendezvous.torchrun",
                          fmt::format("rank 0 left \"{}\" in torchrun's store: expected \"{} "
                                      "host:port secret\". All ranks need one version of Argosy.",
                                      said,
                                      kForm));
  }
  return {.at = parse_endpoint("rendezvous.torchrun", "rank 0's store", words[1]),
          .token = place.token.empty() ? words[2] : place.token};
}

std::shared_ptr<Store> find(const MeetingPlace& place,
                            TcpStore& torchruns,
                            const std::string& key,
                            const Deadline& deadline) {
  constexpr std::chrono::seconds kOneTry{1};
  constexpr std::chrono::seconds kPatience{3};
  std::optional<Deadline::Clock::time_point> refused_since;
  const Tls tls = make_tls(place.tls, place.token);
  while (true) {
    const Left left = read(place, torchruns, key, deadline);
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

}  // namespace

std::shared_ptr<Store> meet_through_torchrun(const MeetingPlace& place,
                                             int number,
                                             const Deadline& deadline) {
  TcpStore torchruns(place.host, place.port, deadline);
  const std::string key = fmt::format("argosy/{}/{}", place.run_id, number);
  return place.rank == 0 ? host(place, torchruns, key, deadline)
                         : find(place, torchruns, key, deadline);
}

}  // namespace argosy::rendezvous
