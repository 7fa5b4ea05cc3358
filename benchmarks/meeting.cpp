// The launchers of many nodes as threads of one process: how long until all have met, and until all
// know of a failure on the last one. Real gRPC on the loopback. Links no libtorch.
//
//     bench_meeting NODES
#include "argosy/launch/nodes/meeting.h"

#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <latch>
#include <string>
#include <vector>

#include "argosy/launch/nodes/control_plane.h"
#include "argosy/os/socket.h"

namespace {

using namespace argosy::launch;
using Clock = std::chrono::steady_clock;

double since_ms(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Times {
  double met_ms = 0;
  double knows_ms = 0;
};

/// One launcher. `all_met` keeps the failure from coming before everybody watches.
Times attend(int node, int nodes, uint16_t port, Clock::time_point start, std::latch& all_met) {
  const NodeInfo self{.wanted_rank = node,
                      .host = "node" + std::to_string(node),
                      .address = "127.0.0.1",
                      .nodes = nodes,
                      .endpoint_ports = {static_cast<uint16_t>(20000 + node)},
                      .run_id = "bench"};
  Met met = meet({.nodes = nodes,
                  .host = "127.0.0.1",
                  .port = port,
                  .hosts = node == 0,
                  .token = "bench",
                  .timeout = std::chrono::seconds(60)},
                 self,
                 [](const std::string&) {});
  Times times{.met_ms = since_ms(start)};
  {
    ControlPlane plane(met.store, met.node, met.plan.node_of_arrival, met.plan.keep_alive);
    all_met.arrive_and_wait();
    const auto failed = Clock::now();
    if (node == nodes - 1) {
      plane.tell({.kind = JobEvent::Kind::kFailed, .node = node});
    }
    bool knows = false;
    while (!knows) {
      pollfd wake{plane.fd(), POLLIN, 0};
      (void)::poll(&wake, 1, 10'000);
      for (const JobEvent& event : plane.events()) {
        knows = knows || event.kind == JobEvent::Kind::kFailed;
      }
    }
    times.knows_ms = since_ms(failed);
  }
  met.presence->leave("");
  if (met.server) {
    (void)met.server->wait_until_members_left(argosy::Deadline::after(std::chrono::seconds(20)));
  }
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 64;
  const argosy::os::HeldPort port =
      argosy::os::HeldPort::hold().or_throw<argosy::ConfigError>("bench.meeting");
  std::latch all_met(nodes);
  const auto start = Clock::now();
  std::vector<std::future<Times>> launchers;
  for (int node = 0; node < nodes; ++node) {
    launchers.push_back(std::async(std::launch::async, [&, node] {
      return attend(node, nodes, port.number(), start, all_met);
    }));
  }
  Times last;
  for (auto& launcher : launchers) {
    const Times times = launcher.get();
    last.met_ms = std::max(last.met_ms, times.met_ms);
    last.knows_ms = std::max(last.knows_ms, times.knows_ms);
  }
  std::printf("{\"bench\": \"meeting\", \"nodes\": %d, \"met_ms\": %.1f, \"knows_ms\": %.1f}\n",
              nodes,
              last.met_ms,
              last.knows_ms);
}
