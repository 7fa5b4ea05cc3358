#include "argosy/transport/gloo/gloo.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/transport/gloo/gloo_transport.h"
#include "argosy/transport/gloo/host.h"

namespace argosy::transport {

void Gloo::connect_all(const GlooOptions& options) {
  connect(options.timeout, [&](const Deadline& deadline) {
    if (size() == 1) {
      return;
    }
    const ListenOn where = choose_place(options, deadline);
    set_mesh(std::make_shared<Mesh>(rank(), size(), where, deadline));
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
      mesh_, mesh_->send(peer, message_slot(tag, bytes), data, static_cast<int64_t>(bytes)));
}

std::unique_ptr<WatchedTransport::Link> Gloo::do_recv(void* data,
                                                      size_t bytes,
                                                      int peer,
                                                      uint32_t tag) {
  return std::make_unique<MeshLink>(
      mesh_, mesh_->recv(peer, message_slot(tag, bytes), data, static_cast<int64_t>(bytes)));
}

void Gloo::interrupt() {
  if (const auto mesh = mark_interrupted()) {
    mesh->interrupt();
  }
}

void Gloo::disconnect() {
  if (const auto mesh = mark_interrupted()) {
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
  const HostCard mine{loopback_id(), source_address(host_of(lobby().address()))};
  lobby().tell(fmt::format("gloo/host/{}", rank()), mine.loopback + "\n" + mine.address, deadline);
  std::vector<HostCard> others;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) {
      const std::string card = lobby().await(fmt::format("gloo/host/{}", peer), peer, deadline);
      const size_t line = card.find('\n');
      others.push_back({card.substr(0, line), card.substr(std::min(line, card.size() - 1) + 1)});
    }
  }
  const std::string address = transport::choose_address(mine, others);
  if (address.empty()) {
    throw ConfigError("transport.gloo",
                      "this host has no address but loopback, and ranks run on other hosts. "
                      "Set ARGOSY_IFNAME.");
  }
  return {.host = address};
}

std::shared_ptr<Mesh> Gloo::mark_interrupted() {
  const std::lock_guard lock(mesh_mutex_);
  interrupted_ = true;
  return mesh_;
}

void Gloo::set_mesh(std::shared_ptr<Mesh> mesh) {
  const std::lock_guard lock(mesh_mutex_);
  mesh_ = std::move(mesh);
  if (interrupted_) {
    mesh_->interrupt();
  }
}

Mesh::Pending Gloo::transmit(
    uint32_t op, uint32_t phase, int peer, const void* data, int64_t bytes) const {
  return bytes == 0 ? Mesh::Pending()
                    : mesh_->send(peer, collective_slot(op, phase, bytes), data, bytes);
}

Mesh::Pending Gloo::receive(
    uint32_t op, uint32_t phase, int peer, void* data, int64_t bytes) const {
  return bytes == 0 ? Mesh::Pending()
                    : mesh_->recv(peer, collective_slot(op, phase, bytes), data, bytes);
}

std::unique_ptr<Transport> make_gloo(std::shared_ptr<rendezvous::Store> store,
                                     int rank,
                                     int size,
                                     const GlooOptions& options) {
  auto transport = std::make_unique<Gloo>(std::move(store), rank, size, options);
  transport->connect_all(options);
  return transport;
}

}  // namespace argosy::transport
