// A rank that does nothing but meet the others: what a rendezvous costs. Links no libtorch.
#include "argosy/rendezvous/join.h"

#include <chrono>
#include <cstdio>

#include "argosy/base/deadline.h"

int main() {
  using namespace std::chrono_literals;
  const auto joined = argosy::rendezvous::join({}, argosy::Deadline::after(60s));
  if (joined.rank == 0) {
    std::printf("{\"bench\": \"join\", \"ranks\": %d}\n", joined.world_size);
  }
}
