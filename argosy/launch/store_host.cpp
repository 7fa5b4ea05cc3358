#include "argosy/launch/store_host.h"

#include <chrono>
#include <optional>

#include "argosy/base/strings.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

/// "run/<id>/rank/3" → 3.
std::optional<int> rank_of(const std::string& member) {
  constexpr std::string_view kPart = "rank/";
  const size_t at = member.rfind(kPart);
  if (at == std::string::npos || (at != 0 && member[at - 1] != '/')) {
    return std::nullopt;
  }
  const std::optional<int64_t> rank = strings::parse_int(member.substr(at + kPart.size()));
  return rank ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

class HostedStore final : public StoreHost {
 public:
  explicit HostedStore(const std::string& token)
      : server_(rendezvous::StoreServer::start({.token = token})), local_(server_->local()) {}

  uint16_t port() const override { return server_->port(); }

  std::vector<int> lost_ranks() override {
    std::vector<int> ranks;
    for (const rendezvous::Departure& departure : local_->departures("", Deadline::after(100ms))) {
      const std::optional<int> rank = rank_of(departure.member);
      if (departure.lost && rank) {
        ranks.push_back(*rank);
      }
    }
    return ranks;
  }

 private:
  std::unique_ptr<rendezvous::StoreServer> server_;
  std::shared_ptr<rendezvous::Store> local_;
};

}  // namespace

std::unique_ptr<StoreHost> host_store(const std::string& token) {
  return std::make_unique<HostedStore>(token);
}

}  // namespace argosy::launch
