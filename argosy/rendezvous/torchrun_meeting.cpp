#include "argosy/rendezvous/torchrun_meeting.h"

#include <fmt/format.h>

#include <string>

#include "argosy/base/error.h"
#include "argosy/rendezvous/invitation.h"
#include "argosy/rendezvous/tcp_store.h"

namespace argosy::rendezvous {

/// torchrun's count of restarts, which could tell a former process's invitation from a new one,
/// differs between its nodes.
std::shared_ptr<Store> meet_through_torchrun(const MeetingPlace& place,
                                             int number,
                                             const Deadline& deadline) {
  TcpStore torchruns(place.host, place.port, deadline);
  const std::string key = fmt::format("argosy/{}/{}", place.run_id, number);
  const InvitationOptions options{.where = "rendezvous.torchrun",
                                  .foreign = "torchrun's store",
                                  .towards = place.host,
                                  .token = place.token,
                                  .tls = place.tls};
  if (place.rank == 0) {
    OpenHouse house = invite(options);
    torchruns.set(key, house.invitation, deadline);
    return std::move(house.store);
  }
  return follow(
      options,
      [&] {
        try {
          return torchruns.get(key, deadline);
        } catch (const TimeoutError& e) {
          throw TimeoutError("rendezvous.torchrun",
                             fmt::format("rank 0 did not come: {}", e.what()),
                             {.op = "join", .group = "world", .rank = place.rank, .peers = {0}});
        }
      },
      deadline);
}

}  // namespace argosy::rendezvous
