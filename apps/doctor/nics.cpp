#include "apps/doctor/nics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "argosy/base/env.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/fd.h"

namespace argosy::doctor {
namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& file) {
  const Result<std::string> text = os::read_file(file.string());
  return text.ok() ? std::string(strings::trim(*text)) : "";
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    entries.push_back(entry.path());
  }
  std::ranges::sort(entries);
  return entries;
}

/// Where a device is among all: "/sys/devices/pci0000:15/0000:15:01.0/0000:17:00.0". "": nowhere.
std::string place_of(const fs::path& link) {
  std::error_code failed;
  const fs::path place = fs::canonical(link, failed);
  return failed ? "" : place.string();
}

/// How many steps two devices go together from the root of the PCI bus.
int shared_steps(const std::string& root, const std::string& a, const std::string& b) {
  const std::string devices = place_of(root + "/sys/devices") + "/";
  if (devices == "/" || !a.starts_with(devices) || !b.starts_with(devices)) {
    return 0;
  }
  const std::vector<std::string> one = strings::split(a.substr(devices.size()), '/');
  const std::vector<std::string> other = strings::split(b.substr(devices.size()), '/');
  const auto parted = std::ranges::mismatch(one, other);
  return static_cast<int>(parted.in1 - one.begin());
}

std::vector<std::string> named(const std::vector<Nic>& nics) {
  std::vector<std::string> names;
  std::ranges::transform(nics, std::back_inserter(names), &Nic::name);
  return names;
}

/// NCCL_…==value: the names of a list that begins with = are whole names, not beginnings.
std::string proposed(const char* variable, const std::string& value) {
  return value.empty() || env::get(variable) ? "" : fmt::format(" {}=={}", variable, value);
}

std::string said_to_nccl() {
  std::string text;
  for (const char* const variable : {"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"}) {
    if (const auto value = env::get(variable)) {
      text += fmt::format("; {}={} is set", variable, *value);
    }
  }
  return text;
}

}  // namespace

std::vector<Nic> active_nics(const std::string& root) {
  std::vector<Nic> nics;
  for (const fs::path& adapter : entries_of(root + "/sys/class/infiniband")) {
    for (const fs::path& port : entries_of(adapter / "ports")) {
      if (!line_of(port / "state").ends_with(": ACTIVE")) {
        continue;
      }
      const std::string rate = line_of(port / "rate");  // "400 Gb/sec (4X NDR)"
      nics.push_back({.name = adapter.filename(),
                      .link = line_of(port / "link_layer"),
                      .rate = rate.substr(0, rate.find(" (")),
                      .path = place_of(adapter / "device")});
      break;
    }
  }
  return nics;
}

std::vector<std::string> nearest_nics(const std::string& root,
                                      const os::Gpu& gpu,
                                      const std::vector<Nic>& nics) {
  const std::string place = place_of(root + "/sys/bus/pci/devices/" + gpu.address);
  if (gpu.address.empty() || place.empty()) {
    return {};
  }
  int most = 0;
  std::vector<Nic> nearest;
  for (const Nic& nic : nics) {
    const int steps = shared_steps(root, place, nic.path);
    if (steps > most) {
      most = steps;
      nearest.clear();
    }
    if (steps > 0 && steps == most) {
      nearest.push_back(nic);
    }
  }
  const std::string node = line_of(fs::path(place) / "numa_node");
  if (most == 0 && !node.empty() && node != "-1") {
    std::ranges::copy_if(nics, std::back_inserter(nearest), [&](const Nic& nic) {
      return line_of(fs::path(nic.path) / "numa_node") == node;
    });
  }
  return named(nearest);
}

std::string interface_of(const std::string& root, const std::string& address) {
  for (const fs::path& entry : entries_of(root + "/sys/class/net")) {
    const Result<std::string> own = os::interface_address(entry.filename());
    if (own.ok() && *own == address) {
      return entry.filename();
    }
  }
  return "";
}

std::string interface_between_hosts(const std::string& address) {
  for (const char* const variable : {"ARGOSY_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    if (const auto name = env::get(variable)) {
      return *name;
    }
  }
  if (!address.empty()) {
    return os::is_loopback(address) ? "" : interface_of("", address);
  }
  // An address for documentation (RFC 5737): what leads there is the default route.
  const Result<std::string> source = os::source_address("192.0.2.1");
  return source.ok() && !source->empty() ? interface_between_hosts(*source) : "";
}

Finding nics_finding(const std::string& root,
                     const std::vector<os::Gpu>& gpus,
                     const std::string& interface) {
  std::vector<Nic> nics = active_nics(root);
  // Where there is InfiniBand, adapters of Ethernet carry other things.
  if (std::ranges::count(nics, "InfiniBand", &Nic::link) > 0) {
    std::erase_if(nics, [](const Nic& nic) { return nic.link != "InfiniBand"; });
  }
  std::map<std::string, std::vector<int>> next_to;
  for (int gpu = 0; gpu < std::ssize(gpus); ++gpu) {
    for (const std::string& nic : nearest_nics(root, gpus[static_cast<size_t>(gpu)], nics)) {
      next_to[nic].push_back(gpu);
    }
  }
  std::vector<std::string> texts;
  std::vector<std::string> chosen;
  for (const Nic& nic : nics) {
    const std::vector<int>& near = next_to[nic.name];
    texts.push_back(fmt::format("{} ({}, {}){}",
                                nic.name,
                                nic.link,
                                nic.rate,
                                near.empty() ? "" : " next to GPU " + strings::ranges(near)));
    if (!near.empty()) {
      chosen.push_back(nic.name);
    }
  }
  const std::string proposal = proposed("NCCL_IB_HCA", fmt::format("{}", fmt::join(chosen, ","))) +
                               proposed("NCCL_SOCKET_IFNAME", interface);
  return {.subject = std::string(kNics),
          .text = (texts.empty() ? "neither InfiniBand nor RoCE: between hosts NCCL goes over TCP"
                                 : fmt::format("{}", fmt::join(texts, "; "))) +
                  said_to_nccl(),
          .advice = proposal.empty() ? "" : "for jobs of several nodes: export" + proposal};
}

}  // namespace argosy::doctor
