#include "argosy/transport/gloo/gloo_movement.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "argosy/transport/bytes.h"

namespace argosy::transport {

using Incoming = GlooExchange::Incoming;
using Outgoing = GlooExchange::Outgoing;

/// Down a binomial tree, block by block.
void GlooMovement::broadcast(void* data, int64_t bytes, int root) {
  const int size = exchange_.size();
  const int place = (exchange_.rank() - root + size) % size;
  const auto real = [&](int p) { return (p + root) % size; };
  const int lowest = place == 0 ? size : place & -place;
  const auto blocks = static_cast<size_t>((bytes + kBlockBytes - 1) / kBlockBytes);
  const auto block = [&](size_t i) {
    const int64_t start = static_cast<int64_t>(i) * kBlockBytes;
    return Incoming{at(data, start), std::min(kBlockBytes, bytes - start)};
  };
  std::vector<Mesh::Pending> receives, sends;
  for (size_t i = 0; place != 0 && i < blocks; ++i) {
    receives.push_back(exchange_.receive(real(place - lowest), block(i)));
  }
  int farthest = 1;
  while (farthest * 2 < lowest) {
    farthest *= 2;
  }
  for (size_t i = 0; i < blocks; ++i) {
    if (place != 0) {
      exchange_.wait(receives[i]);
    }
    for (int distance = farthest; distance >= 1; distance /= 2) {
      if (distance < lowest && place + distance < size) {
        const Incoming piece = block(i);
        sends.push_back(exchange_.send(real(place + distance), {piece.data, piece.bytes}));
      }
    }
  }
  exchange_.wait(sends);
}

void GlooMovement::all_gather(const void* /*input*/, void* output, const Parts& parts) {
  const auto part = [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    return Incoming{at(output, parts.offset[r]), parts.bytes[r]};
  };
  const Incoming mine = part(exchange_.rank());
  exchange_.with_each_peer(part, [&](int /*peer*/) { return Outgoing{mine.data, mine.bytes}; });
}

void GlooMovement::gather(const void* input, void* output, int64_t bytes, int root) {
  const bool takes = exchange_.rank() == root;
  exchange_.with_each_peer(
      [&](int peer) {
        return takes ? Incoming{at(output, peer * bytes), bytes} : Incoming{};
      },
      [&](int peer) {
        return peer == root ? Outgoing{input, bytes} : Outgoing{};
      });
}

void GlooMovement::scatter(const void* input, void* output, int64_t bytes, int root) {
  const bool gives = exchange_.rank() == root;
  exchange_.with_each_peer(
      [&](int peer) {
        return peer == root ? Incoming{output, bytes} : Incoming{};
      },
      [&](int peer) {
        return gives ? Outgoing{at(input, peer * bytes), bytes} : Outgoing{};
      });
}

void GlooMovement::all_to_all(const void* input,
                              const Parts& sends,
                              void* output,
                              const Parts& receives) {
  exchange_.with_each_peer(
      [&](int peer) {
        const auto p = static_cast<size_t>(peer);
        return Incoming{at(output, receives.offset[p]), receives.bytes[p]};
      },
      [&](int peer) {
        const auto p = static_cast<size_t>(peer);
        return Outgoing{at(input, sends.offset[p]), sends.bytes[p]};
      });
}

/// Dissemination: after round k every rank has heard, directly or not, of 2^(k+1) ranks.
void GlooMovement::barrier() {
  const int rank = exchange_.rank();
  const int size = exchange_.size();
  uint32_t round = 0;
  for (int distance = 1; distance < size; distance *= 2, ++round) {
    std::byte here{}, there{};
    auto received = exchange_.receive((rank - distance + size) % size, {&there, 1}, round);
    auto sent = exchange_.send((rank + distance) % size, {&here, 1}, round);
    exchange_.wait(received);
    exchange_.wait(sent);
  }
}

}  // namespace argosy::transport
