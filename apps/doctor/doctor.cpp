#include "apps/doctor/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/os/addresses.h"
#include "argosy/os/gpus.h"
#include "argosy/program/command_line.h"
#include "argosy/rendezvous/join.h"
#include "argosy/rendezvous/store_server.h"

#include "apps/doctor/devices.h"
#include "apps/doctor/finding.h"
#include "apps/doctor/host.h"
#include "apps/doctor/network.h"
#include "apps/doctor/nics.h"
#include "apps/doctor/nodes.h"
#include "apps/doctor/pairs.h"
#include "apps/doctor/training.h"

namespace argosy::doctor {
namespace {

using namespace std::chrono_literals;

int report(const std::vector<Finding>& findings, bool json) {
  fmt::print("{}", json ? to_json(findings) : render(findings));
  return all_well(findings) ? 0 : 1;
}

/// What needs no other node and no network. `address` is the one that other nodes reach, if known.
std::vector<Finding> of_this_machine(const SeenGpus& seen, const std::string& address = {}) {
  std::vector<Finding> findings{{.subject = "argosy", .text = ARGOSY_VERSION}};
  findings.push_back(
      {.subject = "libraries",
       .text = fmt::format("{}, built with GCC {}", rendezvous::library_versions(), __VERSION__)});
  std::ranges::move(host_findings(), std::back_inserter(findings));
  findings.push_back(gpus_finding(seen));
  // A rank sees its own GPU, and what is proposed is for all.
  const std::vector<os::Gpu>& gpus = address.empty() ? seen.gpus.visible : seen.gpus.all;
  if (!gpus.empty()) {
    findings.push_back(nics_finding("", gpus, interface_between_hosts(address)));
  }
  return findings;
}

/// One rank of a job; rank 0 speaks.
int visit_nodes(bool json) {
  const auto joined = rendezvous::join({}, Deadline::after(5min));
  if (joined.world_size == 1) {
    throw UsageError("doctor.nodes",
                     "this process is not one of several ranks, so there is nobody to talk to. On "
                     "each node: argosy launch --nnodes N … argosy doctor --nodes");
  }
  const std::string store = joined.environment.store_host.empty() ? joined.environment.master_addr
                                                                  : joined.environment.store_host;
  const std::string address =
      store.empty() ? "127.0.0.1" : os::source_address(store).or_throw<Error>("doctor.nodes");
  const Deadline deadline = Deadline::after(2min);
  const NodeFindings own{.rank = joined.rank,
                         .host = os::host_name(),
                         .node = joined.environment.node_rank,
                         .findings = of_this_machine(look_at(os::find_gpus()), address)};
  std::vector<Finding> findings =
      compare_nodes(exchange(*joined.store, own, joined.world_size, deadline));
  std::ranges::copy_if(own.findings, std::back_inserter(findings), [](const Finding& one) {
    return one.subject == kNics;  // what it proposes is for all nodes
  });
  findings.push_back(
      judge_calls(call_all(*joined.store, joined.rank, joined.world_size, address, deadline)));
  const int code = joined.rank == 0 ? report(findings, json) : (all_well(findings) ? 0 : 1);
  joined.presence->leave("");
  return code;
}

}  // namespace

int run(const std::vector<std::string>& args) {
  bool json = false;
  bool nodes = false;
  bool no_devices = false;
  bool no_training = false;
  if (program::parse_or_help(
          {.what = "Check what works on this machine: system, limits, network, GPUs, training.",
           .name = "argosy doctor"},
          {program::json_option(&json),
           {"--no_devices", "", "Leave out computing and copying on each GPU", &no_devices},
           {"--no_training", "", "Leave out the test training of two processes", &no_training},
           {"--nodes",
            "",
            "Check whether all ranks of a job reach each other. On each node: argosy launch "
            "--nnodes 2 … argosy doctor --nodes",
            &nodes}},
          args)) {
    return 0;
  }
  if (nodes) {
    return visit_nodes(json);
  }
  const SeenGpus seen = look_at(os::find_gpus());
  no_devices = no_devices || seen.gpus.visible.empty();
  if (::isatty(STDERR_FILENO) != 0) {
    fmt::print(stderr,
               "[doctor] looking at this machine{}{}\n",
               no_devices ? "" : ", then each GPU computes for some seconds",
               no_training ? "" : ", then two processes train for some seconds");
  }
  std::vector<Finding> findings = of_this_machine(seen);
  std::ranges::move(network_findings(), std::back_inserter(findings));
  if (!no_devices) {
    const auto engine = env::own_program().parent_path() / "argosy-torch";
    std::ranges::move(device_findings(seen, engine), std::back_inserter(findings));
  }
  if (!no_training) {
    findings.push_back(training_finding(env::own_program().string()));
  }
  return report(findings, json);
}

}  // namespace argosy::doctor
