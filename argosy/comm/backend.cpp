#include "argosy/comm/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/transport/gloo/gloo.h"
#include "argosy/transport/hierarchical/hierarchical.h"
#include "argosy/transport/in_process.h"
#include "argosy/transport/shm/shm.h"

namespace argosy::comm {
namespace {

/// What every transport's options hold of a request.
template <typename Options>
Options options_of(const TransportRequest& request) {
  Options options;
  options.group = request.group;
  options.world_ranks = request.world_ranks;
  options.job = request.job;
  options.timeout = request.timeout;
  return options;
}

std::unique_ptr<transport::Transport> in_process(const TransportRequest& request) {
  return transport::make_in_process(
      request.store, request.rank, request.size, options_of<transport::InProcessOptions>(request));
}

std::unique_ptr<transport::Transport> gloo(const TransportRequest& request) {
  return transport::make_gloo(
      request.store, request.rank, request.size, options_of<transport::GlooOptions>(request));
}

std::unique_ptr<transport::Transport> shm(const TransportRequest& request) {
  return transport::make_shm(
      request.store, request.rank, request.size, options_of<transport::ShmOptions>(request));
}

std::unique_ptr<transport::Transport> hierarchical(const TransportRequest& request,
                                                   const std::vector<int>& hosts) {
  auto options = options_of<transport::HierarchicalOptions>(request);
  options.hosts = hosts;
  return transport::make_hierarchical(request.store, request.rank, request.size, options);
}

}  // namespace

BackendChoice choose_backend(int size,
                             const std::vector<int>& world_ranks,
                             const std::vector<int>& hosts) {
  std::map<int, int> ranks_of;
  std::vector<int> members;
  for (int rank = 0; rank < size; ++rank) {
    const auto world =
        static_cast<size_t>(world_ranks.empty() ? rank : world_ranks.at(static_cast<size_t>(rank)));
    if (world >= hosts.size()) {
      return {"gloo", "it is not known which ranks share a host"};
    }
    members.push_back(hosts[world]);
    ++ranks_of[hosts[world]];
  }
  const auto by_ranks = [](const auto& a, const auto& b) { return a.second < b.second; };
  const int most = std::ranges::max_element(ranks_of, by_ranks)->second;
  if (most > transport::kMostShmRanks) {
    return {"gloo", fmt::format("{} ranks of a host are too many to share memory", most), members};
  }
  if (ranks_of.size() == 1) {
    return {"shm", fmt::format("all {} ranks are on one host", size), members};
  }
  return {most > 1 ? "hierarchical" : "gloo",
          fmt::format("its {} ranks are on {} hosts", size, ranks_of.size()),
          members};
}

TransportFactory find_backend(const std::string& name, std::vector<int> hosts) {
  if (name == "gloo") {
    return gloo;
  }
  if (name == "shm") {
    return shm;
  }
  if (name == "hierarchical") {
    return [hosts = std::move(hosts)](const TransportRequest& request) {
      BackendChoice choice = choose_backend(request.size, request.world_ranks, hosts);
      if (choice.hosts.empty()) {
        throw UsageError("comm.backend", "backend hierarchical: " + choice.reason);
      }
      return hierarchical(request, choice.hosts);
    };
  }
  if (name == "in_process") {
    return in_process;
  }
  if (name == "auto") {
    return [hosts = std::move(hosts)](const TransportRequest& request) {
      const BackendChoice choice = choose_backend(request.size, request.world_ranks, hosts);
      if (request.rank == 0) {
        log::info("[comm.backend] group \"{}\": {}, because {} (ARGOSY_BACKEND chooses another)",
                  request.group,
                  choice.backend,
                  choice.reason);
      }
      if (choice.backend == "hierarchical") {
        return hierarchical(request, choice.hosts);
      }
      return choice.backend == "shm" ? shm(request) : gloo(request);
    };
  }
  throw UsageError("comm.init",
                   "backend \"" + name +
                       "\" does not exist: expected auto, shm, hierarchical, gloo or in_process" +
                       (name == "nccl" ? " (nccl is not built yet)." : "."));
}

}  // namespace argosy::comm
