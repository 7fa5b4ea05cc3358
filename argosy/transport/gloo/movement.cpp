/// Broadcast, gather, scatter, all_to_all and barrier over Gloo's connections.
#include "argosy/transport/gloo/gloo_transport.h"

namespace argosy::transport {

/// Down a binomial tree, block by block.
void Gloo::do_broadcast(void* data, int64_t bytes, int root, const Deadline& deadline) {
  const uint32_t op = slot_of_call();
  const Segment blocks{0, bytes, kBlockBytes};
  const int place = (rank() - root + size()) % size();
  const auto real = [&](int p) { return (p + root) % size(); };
  const int lowest = place == 0 ? size() : place & -place;
  std::vector<Mesh::Pending> receives, sends;
  for (int64_t i = 0; place != 0 && i < blocks.blocks(); ++i) {
    receives.push_back(
        receive(op, 0, real(place - lowest), at(data, blocks.start(i)), blocks.length(i)));
  }
  int farthest = 1;
  while (farthest * 2 < lowest) {
    farthest *= 2;
  }
  for (int64_t i = 0; i < blocks.blocks(); ++i) {
    if (place != 0) {
      mesh_->wait(receives[static_cast<size_t>(i)], deadline);
    }
    for (int distance = farthest; distance >= 1; distance /= 2) {
      if (distance < lowest && place + distance < size()) {
        sends.push_back(
            transmit(op, 0, real(place + distance), at(data, blocks.start(i)), blocks.length(i)));
      }
    }
  }
  mesh_->wait(sends, deadline);
}

void Gloo::do_all_gather(const void* /*input*/,
                         void* output,
                         const Parts& parts,
                         const Deadline& deadline) {
  const uint32_t op = slot_of_call();
  const auto me = static_cast<size_t>(rank());
  std::vector<Mesh::Pending> pending;
  for_each_peer([&](int peer) {
    const auto p = static_cast<size_t>(peer);
    add(pending, receive(op, 0, peer, at(output, parts.offset[p]), parts.bytes[p]));
  });
  for_each_peer([&](int peer) {
    add(pending, transmit(op, 0, peer, at(output, parts.offset[me]), parts.bytes[me]));
  });
  mesh_->wait(pending, deadline);
}

void Gloo::do_gather(
    const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) {
  const uint32_t op = slot_of_call();
  std::vector<Mesh::Pending> pending;
  if (rank() != root) {
    add(pending, transmit(op, 0, root, input, bytes));
  } else {
    for_each_peer(
        [&](int peer) { add(pending, receive(op, 0, peer, at(output, peer * bytes), bytes)); });
  }
  mesh_->wait(pending, deadline);
}

void Gloo::do_scatter(
    const void* input, void* output, int64_t bytes, int root, const Deadline& deadline) {
  const uint32_t op = slot_of_call();
  std::vector<Mesh::Pending> pending;
  if (rank() != root) {
    add(pending, receive(op, 0, root, output, bytes));
  } else {
    for_each_peer(
        [&](int peer) { add(pending, transmit(op, 0, peer, at(input, peer * bytes), bytes)); });
  }
  mesh_->wait(pending, deadline);
}

void Gloo::do_all_to_all(const void* input,
                         const Parts& sends,
                         void* output,
                         const Parts& receives,
                         const Deadline& deadline) {
  const uint32_t op = slot_of_call();
  std::vector<Mesh::Pending> pending;
  for_each_peer([&](int peer) {
    const auto p = static_cast<size_t>(peer);
    add(pending, receive(op, 0, peer, at(output, receives.offset[p]), receives.bytes[p]));
  });
  for_each_peer([&](int peer) {
    const auto p = static_cast<size_t>(peer);
    add(pending, transmit(op, 0, peer, at(input, sends.offset[p]), sends.bytes[p]));
  });
  mesh_->wait(pending, deadline);
}

/// Dissemination: after round k every rank has heard, directly or not, of 2^(k+1) ranks.
void Gloo::do_barrier(const Deadline& deadline) {
  const uint32_t op = slot_of_call();
  uint32_t round = 0;
  for (int distance = 1; distance < size(); distance *= 2, ++round) {
    std::byte here{}, there{};
    auto received = receive(op, round, (rank() - distance + size()) % size(), &there, 1);
    auto sent = transmit(op, round, (rank() + distance) % size(), &here, 1);
    mesh_->wait(received, deadline);
    mesh_->wait(sent, deadline);
  }
}

}  // namespace argosy::transport
