#pragma once

#include <cstdint>

#include "argosy/transport/gloo/gloo_exchange.h"
#include "argosy/transport/watched_transport.h"

// Internal to the room: the collectives that move data and change none, over Gloo's connections.
namespace argosy::transport {

/// One collective that moves bytes. The arguments are those of the functions of the same name in
/// WatchedTransport.
class GlooMovement final {
 public:
  explicit GlooMovement(const GlooExchange& exchange) : exchange_(exchange) {}

  void barrier();
  void broadcast(void* data, int64_t bytes, int root);
  void all_gather(const void* input, void* output, const Parts& parts);
  void gather(const void* input, void* output, int64_t bytes, int root);
  void scatter(const void* input, void* output, int64_t bytes, int root);
  void all_to_all(const void* input, const Parts& sends, void* output, const Parts& receives);

 private:
  const GlooExchange exchange_;
};

}  // namespace argosy::transport
