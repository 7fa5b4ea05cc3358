#include "argosy/comm/backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/transport/gloo/gloo.h"
#include "argosy/transport/hierarchical/hierarchical.h"
#include "argosy/transport/in_process.h"
#include "argosy/transport/nccl/nccl.h"
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
  options.job_ranks = request.job_ranks;
  options.timeout = request.timeout;
  return options;
}

UsageError no_such_backend(const std::string& name) {
  return {"comm.init",
          "backend \"" + name +
              "\" does not exist: expected auto, shm, hierarchical, gloo, in_process, nccl, or one "
              "for each kind of memory, as in cpu:gloo,cuda:nccl."};
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
  throw no_such_backend(name);
}

Backends Backends::parse(const std::string& name) {
  static constexpr std::array kHost{"auto", "shm", "hierarchical", "gloo", "in_process"};
  static constexpr std::array kDevices{"cuda", "hip", "gpu"};
  const auto is_one_of = [](const auto& names, std::string_view value) {
    return std::ranges::find(names, value) != names.end();
  };
  if (name == "auto") {
    return {};
  }
  if (name == "nccl" || name == "rccl") {
    return {.devices = ForDevices::kNccl};
  }
  if (is_one_of(kHost, name)) {
    return {.host = name, .devices = ForDevices::kThroughHost};
  }
  Backends backends;
  for (const std::string& part : strings::split(name, ',')) {
    const size_t colon = part.find(':');
    const std::string_view word(part);
    const std::string_view of = word.substr(0, colon);
    const std::string_view backend =
        colon == std::string::npos ? std::string_view() : word.substr(colon + 1);
    if (of == "cpu" && is_one_of(kHost, backend)) {
      backends.host = backend;
    } else if (is_one_of(kDevices, of) && (backend == "nccl" || backend == "rccl")) {
      backends.devices = ForDevices::kNccl;
    } else if (is_one_of(kDevices, of) && is_one_of(kHost, backend)) {
      backends.devices = ForDevices::kThroughHost;
    } else {
      throw no_such_backend(name);
    }
  }
  return backends;
}

/// Errors: ConfigError for a value of the variable that means nothing.
bool always_exact() {
  const std::string mode = strings::to_lower(env::get("ARGOSY_NCCL_MODE").value_or("native"));
  if (mode != "native" && mode != "exact") {
    throw ConfigError("comm.init",
                      fmt::format("ARGOSY_NCCL_MODE: expected native or exact, got \"{}\".", mode));
  }
  return mode == "exact";
}

TransportFactory device_backend(ForDevices devices) {
  return [devices, always = always_exact()](
             const TransportRequest& request) -> std::unique_ptr<transport::Transport> {
    auto options = options_of<transport::NcclOptions>(request);
    options.queues = request.queues;
    const bool has_streams = request.queues != nullptr;
    if (!has_streams) {
      options.refusal =
          "libtorch does not tell the streams of this device here: it is not a build for CUDA or "
          "ROCm, or was loaded where its symbols are not found (RTLD_LOCAL)";
    }
    options.mode = [always, queues = request.queues] {
      return always || queues->wants_exact() ? transport::NcclMode::kExact
                                             : transport::NcclMode::kNative;
    };
    options.tell = [&](const std::string& library, const std::vector<std::string>& lacks) {
      log::info("[comm.backend] group \"{}\": tensors of devices by {}{}",
                request.group,
                library,
                lacks.empty() ? "" : "; " + fmt::format("{}", fmt::join(lacks, "; ")));
    };
    try {
      return transport::make_nccl(request.store, request.rank, request.size, options);
    } catch (const ConfigError& error) {
      if (devices == ForDevices::kNccl) {
        throw;
      }
      if (request.rank == 0) {
        log::write(
            has_streams ? log::Level::kWarn : log::Level::kInfo,
            fmt::format("[comm.backend] group \"{}\": tensors of devices go through the host, "
                        "slowly: {}",
                        request.group,
                        error.what()));
      }
      return nullptr;
    }
  };
}

}  // namespace argosy::comm
