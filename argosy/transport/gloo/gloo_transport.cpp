#include "argosy/transport/gloo/gloo_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/rendezvous/host_card.h"

namespace argosy::transport {

class Gloo::MeshLink final : public Link {
 public:
  MeshLink(std::shared_ptr<Mesh> mesh, Mesh::Pending pending)
      : mesh_(std::move(mesh)), pending_(std::move(pending)) {}
  void wait(const Deadline& deadline) override { mesh_->wait(pending_, deadline); }
  [[nodiscard]] int source() const override { return pending_.peer(); }

 private:
  const std::shared_ptr<Mesh> mesh_;
  Mesh::Pending pending_;
};

Gloo::Gloo(std::shared_ptr<rendezvous::Store> store, int rank, int size, const GlooOptions& options)
    : ForwardingTransport(std::move(store),
                          rank,
                          size,
                          {.transport = "gloo",
                           .group = options.group,
                           .world_ranks = options.world_ranks,
                           .job = options.job,
                           .job_ranks = options.job_ranks,
                           .patience = options.patience},
                          Deadline::after(options.timeout)) {}

void Gloo::connect_all(const GlooOptions& options) {
  connect(options.timeout, [&](const Deadline& deadline) {
    if (size() == 1) {
      return;
    }
    const ListenOn where = choose_place(options, deadline);
    if (!mesh_.open(std::make_shared<Mesh>(rank(), size(), where, deadline))) {
      mesh_->interrupt();
    }
    lobby().tell(fmt::format("gloo/address/{}", rank()), mesh_->card(), deadline);
    std::vector<std::string> cards(static_cast<size_t>(size()));
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) {
        cards[static_cast<size_t>(peer)] =
            lobby().await(fmt::format("gloo/address/{}", peer), peer, deadline);
      }
    }
    mesh_->connect(cards, deadline, [&] { lobby().look_around(); });
    do_barrier(deadline);  // or a rank with nothing to do would leave while others still connect
  });
}

std::unique_ptr<WatchedTransport::Link> Gloo::do_send(const void* data,
                                                      size_t bytes,
                                                      int peer,
                                                      uint32_t tag) {
  return std::make_unique<MeshLink>(
      mesh_.get(), mesh_->send(peer, message_slot(tag, bytes), data, static_cast<int64_t>(bytes)));
}

std::unique_ptr<WatchedTransport::Link> Gloo::do_recv(void* data,
                                                      size_t bytes,
                                                      int peer,
                                                      uint32_t tag) {
  return std::make_unique<MeshLink>(
      mesh_.get(), mesh_->recv(peer, message_slot(tag, bytes), data, static_cast<int64_t>(bytes)));
}

void Gloo::interrupt() {
  if (const auto mesh = mesh_.interrupt()) {
    mesh->interrupt();
  }
}

void Gloo::disconnect() {
  if (const auto mesh = mesh_.interrupt()) {
    mesh->close();
  }
}

ListenOn Gloo::choose_place(const GlooOptions& options, const Deadline& deadline) {
  for (const auto& name : {options.interface,
                           env::get("ARGOSY_IFNAME").value_or(""),
                           env::get("GLOO_SOCKET_IFNAME").value_or("")}) {
    if (!name.empty()) {
      return {.interface = name};
    }
  }
  if (!options.host.empty()) {
    return {.host = options.host};
  }
  const rendezvous::HostCard mine{
      rendezvous::loopback_id(),
      rendezvous::source_address(rendezvous::host_of(lobby().address()))};
  lobby().tell(fmt::format("gloo/host/{}", rank()), mine.loopback + "\n" + mine.address, deadline);
  std::vector<rendezvous::HostCard> others;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) {
      const std::string card = lobby().await(fmt::format("gloo/host/{}", peer), peer, deadline);
      const size_t line = card.find('\n');
      others.push_back({card.substr(0, line), card.substr(std::min(line, card.size() - 1) + 1)});
    }
  }
  const std::string address = rendezvous::choose_address(mine, others);
  if (address.empty()) {
    throw ConfigError("transport.gloo",
                      "this host has no address but loopback, and ranks run on other hosts. "
                      "Set ARGOSY_IFNAME.");
  }
  return {.host = address};
}

GlooExchange Gloo::exchange(const Deadline& deadline) {
  return {*mesh_, rank(), size(), static_cast<uint32_t>(history() ^ history() >> 32U), deadline};
}

}  // namespace argosy::transport
