#include "argosy/os/topology.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "argosy/base/strings.h"
#include "argosy/os/cpu.h"
#include "argosy/os/fd.h"

namespace argosy::os {
namespace {

std::string read_line(const std::string& path) {
  Result<std::string> text = read_file(path);
  return text.ok() ? std::string(strings::trim(*text)) : "";
}

/// NUMA node of each CPU.
std::map<int, int> numa_nodes(const std::string& sysfs) {
  constexpr std::string_view kName = "node";
  std::map<int, int> node_of;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(sysfs + "/node", none)) {
    const std::string name = entry.path().filename().string();
    const auto number =
        name.starts_with(kName) ? strings::parse_int(name.substr(kName.size())) : std::nullopt;
    const auto cpus =
        number ? parse_cpu_list(read_line(entry.path().string() + "/cpulist")) : std::nullopt;
    for (const int cpu : cpus.value_or(std::vector<int>())) {
      node_of[cpu] = static_cast<int>(*number);
    }
  }
  return node_of;
}

/// Which part of the machine the binding keeps together.
int part_of(const CpuPlace& place, CpuBinding binding) {
  switch (binding) {
    case CpuBinding::kNuma:
      return place.node;
    case CpuBinding::kSocket:
      return place.package;
    default:
      return place.core;
  }
}

}  // namespace

std::vector<int> affinity_cpus() {
  std::vector<int> cpus;
  for (int count = 1024; count <= (1 << 20); count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(static_cast<size_t>(count)), [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(count));
    if (::sched_getaffinity(0, size, mask.get()) != 0) {
      continue;  // EINVAL: the mask is too small for this machine
    }
    for (int cpu = 0; cpu < count; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), size, mask.get())) {
        cpus.push_back(cpu);
      }
    }
    break;
  }
  return cpus;
}

std::vector<CpuPlace> cpu_places(const std::vector<int>& cpus, const std::string& sysfs) {
  const std::map<int, int> node_of = numa_nodes(sysfs);
  std::vector<CpuPlace> places;
  for (const int cpu : cpus) {
    const std::string folder = fmt::format("{}/cpu/cpu{}/topology/", sysfs, cpu);
    const auto siblings = parse_cpu_list(read_line(folder + "thread_siblings_list"));
    const auto package = strings::parse_int(read_line(folder + "physical_package_id"));
    const auto node = node_of.find(cpu);
    places.push_back({.cpu = cpu,
                      .core = siblings && !siblings->empty() ? siblings->front() : cpu,
                      .package = static_cast<int>(std::max<int64_t>(0, package.value_or(0))),
                      .node = node == node_of.end() ? 0 : node->second});
  }
  return places;
}

std::vector<std::vector<int>> share_out(std::vector<CpuPlace> places,
                                        int shares,
                                        CpuBinding binding) {
  std::vector<std::vector<int>> cpus(static_cast<size_t>(std::max(0, shares)));
  if (binding == CpuBinding::kNone || shares < 1) {
    return cpus;
  }
  std::ranges::sort(places, {}, [](const CpuPlace& place) {
    return std::tuple(place.package, place.node, place.core, place.cpu);
  });
  std::vector<std::vector<int>> parts;  // in the order of the machine
  std::map<int, size_t> index;
  for (const CpuPlace& place : places) {
    const auto [found, added] = index.try_emplace(part_of(place, binding), parts.size());
    if (added) {
      parts.emplace_back();
    }
    parts[found->second].push_back(place.cpu);
  }
  const size_t count = parts.size();
  const auto wanted = static_cast<size_t>(shares);
  if (count == 0 || (binding == CpuBinding::kCores && count < wanted)) {
    return cpus;
  }
  for (size_t share = 0; share < wanted; ++share) {
    const size_t first = share * count / wanted;
    const size_t last = binding == CpuBinding::kCores ? (share + 1) * count / wanted : first + 1;
    for (size_t part = first; part < last; ++part) {
      cpus[share].insert(cpus[share].end(), parts[part].begin(), parts[part].end());
    }
    std::ranges::sort(cpus[share]);
  }
  return cpus;
}

namespace {

/// Those of `places` that a process whose device is next to the CPUs `near` may be bound to.
std::vector<CpuPlace> places_near(const std::vector<CpuPlace>& places,
                                  const std::vector<int>& near,
                                  CpuBinding binding) {
  std::vector<CpuPlace> found;
  std::ranges::copy_if(places, std::back_inserter(found), [&](const CpuPlace& place) {
    return std::ranges::count(near, place.cpu) > 0;
  });
  if (binding != CpuBinding::kSocket) {
    return found;
  }
  std::vector<CpuPlace> of_socket;
  std::ranges::copy_if(places, std::back_inserter(of_socket), [&](const CpuPlace& place) {
    return std::ranges::count(found, place.package, &CpuPlace::package) > 0;
  });
  return of_socket;
}

}  // namespace

std::vector<std::vector<int>> share_out_near(const std::vector<CpuPlace>& places,
                                             const std::vector<std::vector<int>>& near,
                                             CpuBinding binding) {
  std::vector<std::vector<int>> cpus(near.size());
  if (binding == CpuBinding::kNone) {
    return cpus;
  }
  std::map<std::vector<int>, std::vector<size_t>>
      together;  // processes by the threads next to them
  for (size_t process = 0; process < near.size(); ++process) {
    std::vector<int> here;
    std::ranges::transform(
        places_near(places, near[process], binding), std::back_inserter(here), &CpuPlace::cpu);
    std::ranges::sort(here);
    together[here].push_back(process);
  }
  std::set<int> taken;
  for (const auto& [here, processes] : together) {
    const std::vector<CpuPlace> parts = places_near(places, here, CpuBinding::kCores);
    const auto shares = share_out(parts, static_cast<int>(processes.size()), CpuBinding::kCores);
    const bool apart = std::ranges::none_of(
        parts, [&](const CpuPlace& place) { return taken.contains(place.core); });
    for (size_t i = 0; i < processes.size(); ++i) {
      cpus[processes[i]] = binding == CpuBinding::kCores ? shares[i] : here;
      if (!apart || cpus[processes[i]].empty()) {
        return std::vector<std::vector<int>>(near.size());
      }
    }
    std::ranges::transform(parts, std::inserter(taken, taken.end()), &CpuPlace::core);
  }
  return cpus;
}

int fewest_cores(const std::vector<CpuPlace>& places, const std::vector<std::vector<int>>& bound) {
  std::vector<std::set<int>> cores;  // of each process
  std::map<int, int> processes;      // of each core
  for (const std::vector<int>& cpus : bound) {
    std::set<int>& own = cores.emplace_back();
    std::ranges::transform(places_near(places, cpus, CpuBinding::kCores),
                           std::inserter(own, own.end()),
                           &CpuPlace::core);
    for (const int core : own) {
      ++processes[core];
    }
  }
  double fewest = static_cast<double>(places.size());
  for (const std::set<int>& own : cores) {
    double parts = 0;
    for (const int core : own) {
      parts += 1.0 / processes[core];
    }
    fewest = std::min(fewest, parts);
  }
  constexpr double kRounding = 1e-6;  // of three thirds
  return std::max(1, static_cast<int>(fewest + kRounding));
}

}  // namespace argosy::os
