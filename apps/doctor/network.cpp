#include "apps/doctor/network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "argosy/base/catalogue.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/fd.h"
#include "argosy/os/socket.h"
#include "argosy/rendezvous/store_client.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::doctor {
namespace {

using Verdict = Finding::Verdict;
using namespace std::chrono_literals;

constexpr auto kPatience = 3s;

Finding interfaces() {
  std::vector<std::string> others;
  std::ranges::copy_if(os::local_addresses(), std::back_inserter(others), [](const auto& address) {
    return !os::is_loopback(address) && !address.starts_with("fe80:");
  });
  return {.subject = "addresses",
          .text = others.empty() ? "the loopback only: jobs of one node"
                                 : fmt::format("{}", fmt::join(others, ", "))};
}

Finding own_name() {
  const std::string name = os::host_name();
  const Result<std::vector<std::string>> addresses = os::resolve_host(name);
  if (!addresses.ok()) {
    return {.subject = "host name",
            .verdict = Verdict::kNote,
            .text = fmt::format("{} has no address", name),
            .advice = "other nodes cannot be given this name: give an address"};
  }
  const bool loopback = std::ranges::all_of(*addresses, os::is_loopback);
  return {.subject = "host name",
          .verdict = loopback ? Verdict::kNote : Verdict::kFine,
          .text = fmt::format("{} is {}", name, fmt::join(*addresses, ", ")),
          .advice = loopback ? "a loopback address, as Debian's /etc/hosts has it: as the meeting "
                               "place of several nodes give an address"
                             : ""};
}

/// "": we reach ourselves there. Otherwise why not.
std::string try_address(const std::string& address) {
  const Result<os::Listener> listener = os::Listener::listen_tcp(address, 0);
  if (!listener.ok()) {
    return listener.failure().what;
  }
  const Deadline deadline = Deadline::after(kPatience);
  auto accepting = std::async(std::launch::async, [&] { return listener->accept(deadline).ok(); });
  const Result<os::UniqueFd> fd = os::connect_tcp(address, listener->port(), deadline);
  const bool accepted = accepting.get();
  return fd.ok() ? (accepted ? "" : "the connection does not arrive") : fd.failure().what;
}

Finding connections() {
  std::vector<std::string> reached;
  for (const std::string& address : os::local_addresses()) {
    if (address.starts_with("fe80:")) {
      continue;  // means nothing without its interface
    }
    const std::string why = try_address(address);
    if (why.empty()) {
      reached.push_back(address);
    } else if (os::is_ipv4(address)) {
      return {.subject = "connections",
              .verdict = Verdict::kBad,
              .text = fmt::format("this host does not reach itself at {}: {}", address, why),
              .advice =
                  "a firewall that keeps processes of one host apart (iptables, nft), or an "
                  "interface that is half up"};
    }
  }
  return {.subject = "connections",
          .text = fmt::format("this host reaches itself at {}", fmt::join(reached, ", "))};
}

/// Where torchrun's, the launcher's and Paddle's jobs meet unless told otherwise.
Finding ports() {
  std::vector<int> taken;
  for (const uint16_t port : {uint16_t{29500}, uint16_t{29400}, uint16_t{6069}}) {
    if (!os::HeldPort::hold(port).ok()) {
      taken.push_back(port);
    }
  }
  const Result<std::string> text = os::read_file("/proc/sys/net/ipv4/ip_local_port_range");
  std::string range = text.ok() ? std::string(strings::trim(*text)) : "not known";
  std::ranges::replace(range, '\t', '-');
  return {.subject = "ports",
          .verdict = taken.empty() ? Verdict::kFine : Verdict::kNote,
          .text = fmt::format("{}; free ones are chosen from {}",
                              taken.empty() ? "29500, 29400 and 6069 are free"
                                            : fmt::format("taken: {}", fmt::join(taken, ", ")),
                              range),
          .advice = taken.empty() ? ""
                                  : "another job runs here, or ended a moment ago: give the "
                                    "next one of several nodes another port (ss -ltnp)"};
}

Finding backends() {
  return {.subject = "backends",
          .text =
              "shared memory (shm) inside a host, Gloo over TCP between hosts; for GPUs NCCL "
              "or RCCL where all ranks have it, else through the host's memory"};
}

Finding store() {
  const auto start = std::chrono::steady_clock::now();
  try {
    const auto server = rendezvous::StoreServer::start({.token = "doctor"});
    const Deadline deadline = Deadline::after(kPatience);
    const auto client = rendezvous::connect_store("127.0.0.1", server->port(), "doctor", deadline);
    client->set("key", "value", deadline);
    if (client->get("key", deadline) == "value") {
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      return {.subject = "store", .text = fmt::format("answers in {:.1f} ms", took.count())};
    }
    return {.subject = "store", .verdict = Verdict::kBad, .text = "another value came back"};
  } catch (const Error& error) {
    return {.subject = "store",
            .verdict = Verdict::kBad,
            .text = error.what(),
            .advice = catalogue_section("rendezvous")};
  }
}

}  // namespace

std::vector<Finding> network_findings() {
  return {interfaces(), own_name(), connections(), ports(), backends(), store()};
}

}  // namespace argosy::doctor
