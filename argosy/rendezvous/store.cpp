#include "argosy/rendezvous/store.h"

#include <chrono>

namespace argosy::rendezvous {

int64_t local_time_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t Store::time_us(const Deadline& /*deadline*/) {
  return local_time_us();
}

}  // namespace argosy::rendezvous
