#include "apps/doctor/pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/socket.h"

#include <nlohmann/json.hpp>

namespace argosy::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Calls, host, address, failed, took_ms)

namespace {

using namespace std::chrono_literals;

constexpr auto kPairPatience = 5s;  // for one connection

/// Takes connections until it goes.
class Answering {
 public:
  explicit Answering(os::Listener listener) : listener_(std::move(listener)) {
    thread_ = std::thread([this] {
      while (!stop_) {
        (void)listener_.accept(Deadline::after(50ms));
      }
    });
  }
  ~Answering() {
    stop_ = true;
    thread_.join();
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  Answering(Answering&&) = delete;
  Answering& operator=(Answering&&) = delete;

 private:
  os::Listener listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

std::string key(const char* what, int rank) {
  return fmt::format("doctor/{}/{}", what, rank);
}

/// `place`: "address port".
void call(const std::string& place, Calls& mine) {
  const std::vector<std::string> words = strings::split(place, ' ');
  const auto port = words.size() == 2 ? strings::parse_int(words[1]) : std::nullopt;
  if (!port || *port < 1 || *port > 65535) {
    throw RendezvousError("doctor.nodes", fmt::format("a rank says that it is at \"{}\"", place));
  }
  const auto start = std::chrono::steady_clock::now();
  const Result<os::UniqueFd> fd =
      os::connect_tcp(words[0], static_cast<uint16_t>(*port), Deadline::after(kPairPatience));
  mine.failed.push_back(fd.ok() ? "" : fd.failure().what);
  mine.took_ms.push_back(
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

std::vector<Calls> call_all(rendezvous::Store& store,
                            int rank,
                            int ranks,
                            const std::string& address,
                            const Deadline& deadline) {
  os::Listener listener = os::Listener::listen_tcp(address, 0).or_throw<Error>("doctor.nodes");
  store.set(key("place", rank), fmt::format("{} {}", address, listener.port()), deadline);
  const Answering answering(std::move(listener));
  Calls mine{.host = os::host_name(), .address = address};
  for (int peer = 0; peer < ranks; ++peer) {
    call(store.get(key("place", peer), deadline), mine);
  }
  store.set(key("calls", rank), nlohmann::json(mine).dump(), deadline);
  std::vector<Calls> all;
  for (int peer = 0; peer < ranks; ++peer) {
    all.push_back(nlohmann::json::parse(store.get(key("calls", peer), deadline)).get<Calls>());
  }
  return all;
}

Finding judge_calls(const std::vector<Calls>& calls) {
  std::vector<std::string> silent;
  double slowest = 0;
  std::string pair;
  const auto name = [&](size_t rank) {
    return fmt::format("{} ({}, rank {})", calls[rank].host, calls[rank].address, rank);
  };
  for (size_t from = 0; from < calls.size(); ++from) {
    for (size_t to = 0; to < calls[from].failed.size() && to < calls.size(); ++to) {
      if (!calls[from].failed[to].empty()) {
        silent.push_back(
            fmt::format("{} cannot reach {}: {}", name(from), name(to), calls[from].failed[to]));
      } else if (calls[from].took_ms[to] > slowest) {
        slowest = calls[from].took_ms[to];
        pair = fmt::format("{} to {}", name(from), name(to));
      }
    }
  }
  if (!silent.empty()) {
    return {.subject = "nodes",
            .verdict = Finding::Verdict::kBad,
            .text = fmt::format("{}", fmt::join(silent, "; ")),
            .advice =
                "a firewall between them, or an address that others cannot use: --host, "
                "--ifname"};
  }
  return {.subject = "nodes",
          .text = fmt::format("all {} ranks reach each other; slowest connection {:.2f} ms, {}",
                              calls.size(),
                              slowest,
                              pair)};
}

}  // namespace argosy::doctor
