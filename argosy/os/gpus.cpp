#include "argosy/os/gpus.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "argosy/base/strings.h"
#include "argosy/os/cpu.h"
#include "argosy/os/fd.h"

namespace argosy::os {
namespace {

namespace fs = std::filesystem;

/// The names in a folder; none where it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

/// The number in "nvidia7", where the prefix is "nvidia".
std::optional<int64_t> number_after(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) ? strings::parse_int(name.substr(prefix.size())) : std::nullopt;
}

/// Lines of a name and a value, with a colon between them or without.
std::map<std::string, std::string> read_values(const std::string& path) {
  std::map<std::string, std::string> values;
  const Result<std::string> text = read_file(path);
  for (const std::string& line : strings::split(text.ok() ? *text : "", '\n')) {
    const size_t end = std::min(line.find(':'), line.find_last_of(" \t"));
    if (end != std::string::npos) {
      values[line.substr(0, end)] = strings::trim(std::string_view(line).substr(end + 1));
    }
  }
  return values;
}

std::optional<int64_t> number(const std::map<std::string, std::string>& values,
                              const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : strings::parse_int(found->second);
}

std::string text_of(const std::map<std::string, std::string>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

Gpu gpu_at(const std::string& root, const std::string& address) {
  const Result<std::string> list =
      read_file(fmt::format("{}/sys/bus/pci/devices/{}/local_cpulist", root, address));
  const auto cpus = parse_cpu_list(list.ok() ? strings::trim(*list) : "");
  return {.address = address, .cpus = cpus.value_or(std::vector<int>())};
}

/// By modes, and by the cgroup. Does not open it: that would start some drivers.
bool may_open(const std::string& path) {
  return ::access(path.c_str(), R_OK | W_OK) == 0;
}

/// The kernel itself makes /dev's files. Containers make their own.
bool kernel_makes_dev(const std::string& root) {
  const Result<std::string> mounts = read_file(root + "/proc/self/mountinfo");
  return std::ranges::any_of(strings::split(mounts.ok() ? *mounts : "", '\n'),
                             [](const std::string& line) {
                               return line.find(" /dev ") != std::string::npos &&
                                      line.find(" - devtmpfs ") != std::string::npos;
                             });
}

/// The driver's files tell of all GPUs of the machine. Which of them are ours is up to their device
/// files. Outside of containers there are none before the first program uses a GPU: all are ours.
std::vector<Gpu> nvidias(const std::string& root, int& closed) {
  std::vector<int64_t> minors;
  bool none_made = !fs::exists(root + "/dev/nvidiactl");
  for (const std::string& name : names_in(root + "/dev")) {
    if (const auto minor = number_after(name, "nvidia")) {
      none_made = false;
      if (may_open(root + "/dev/" + name)) {
        minors.push_back(*minor);
      } else {
        ++closed;
      }
    }
  }
  const bool all_ours = none_made && kernel_makes_dev(root);
  const std::string folder = root + "/proc/driver/nvidia/gpus";
  std::vector<Gpu> gpus;
  for (const std::string& address : names_in(folder)) {
    const auto values = read_values(folder + "/" + address + "/information");
    const auto minor = number(values, "Device Minor");
    if (all_ours || (minor && std::ranges::count(minors, *minor) > 0)) {
      gpus.push_back(gpu_at(root, address));
      const std::string uuid = text_of(values, "GPU UUID");
      if (uuid.find('?') == std::string::npos) {  // as it is before its first use
        gpus.back().uuid = uuid;
      }
    }
  }
  return gpus.size() < minors.size() ? std::vector<Gpu>(minors.size()) : gpus;
}

/// "0000:17:00.0", by the kernel's number of the card and, where it has parts, of the part.
std::string pci_address(const std::string& root, int64_t domain, int64_t location) {
  const auto address = [&](int64_t function) {
    return fmt::format(
        "{:04x}:{:02x}:{:02x}.{}", domain, location >> 8 & 0xff, location >> 3 & 0x1f, function);
  };
  const std::string own = address(location & 7);
  return fs::exists(root + "/sys/bus/pci/devices/" + own) ? own : address(0);
}

/// Those of processors have up to 44 (Ryzen 3400G), and the smallest that AMD's libraries support
/// 56. Neither their memory nor their links tell them apart in the kernel's files: local_mem_size
/// is 0 for all, and what they take of the host's memory is listed as theirs.
constexpr int64_t kFewestSimds = 48;

std::vector<Gpu> amds(const std::string& root, int& closed) {
  const std::string folder = root + "/sys/class/kfd/kfd/topology/nodes";
  const std::vector<std::string> files = names_in(root + "/dev/dri");
  std::map<int64_t, Gpu> by_node;  // of processors, some of which are the CPU's
  for (const std::string& name : names_in(folder)) {
    const auto node = strings::parse_int(name);
    const auto values = read_values(folder + "/" + name + "/properties");
    const auto minor = number(values, "drm_render_minor");
    const std::string file = minor ? fmt::format("renderD{}", *minor) : "";
    if (!node || number(values, "simd_count").value_or(0) < kFewestSimds ||
        std::ranges::count(files, file) == 0) {
      continue;  // no GPU, or another container's
    }
    if (!may_open(root + "/dev/kfd") || !may_open(root + "/dev/dri/" + file)) {
      ++closed;
      continue;
    }
    by_node[*node] = gpu_at(
        root,
        pci_address(
            root, number(values, "domain").value_or(0), number(values, "location_id").value_or(0)));
  }
  std::vector<Gpu> gpus;
  for (auto& [node, gpu] : by_node) {
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

/// The GPU that an entry of a list names by the beginning of its UUID. nullopt: none. Where a UUID
/// is not known, it may be the one, and the entry counts.
std::optional<Gpu> named(const std::vector<Gpu>& gpus, std::string_view name) {
  if (name.empty()) {
    return std::nullopt;
  }
  const auto found =
      std::ranges::find_if(gpus, [&](const Gpu& gpu) { return gpu.uuid.starts_with(name); });
  if (found != gpus.end()) {
    return *found;
  }
  const bool all_known = std::ranges::none_of(gpus, &std::string::empty, &Gpu::uuid);
  return all_known ? std::nullopt : std::optional(Gpu{});
}

std::vector<Gpu> narrowed(const std::vector<Gpu>& gpus, const std::optional<std::string>& list) {
  if (!list) {
    return gpus;
  }
  std::vector<Gpu> seen;
  bool instance = false;
  for (const std::string& entry : strings::split(*list, ',')) {
    const std::string_view name = strings::trim(entry);
    if (name.starts_with("MIG-")) {
      if (!std::exchange(instance, true)) {  // a process sees one
        seen.emplace_back();
      }
      continue;
    }
    const std::optional<int64_t> index = strings::parse_int(name);
    const bool there = index && *index >= 0 && *index < std::ssize(gpus);
    const std::optional<Gpu> gpu = there   ? std::optional(gpus[static_cast<size_t>(*index)])
                                   : index ? std::nullopt
                                           : named(gpus, name);
    if (!gpu) {
      break;
    }
    seen.push_back(*gpu);
  }
  return seen;
}

constexpr const char* kCudasList = "CUDA_VISIBLE_DEVICES";
constexpr const char* kAmdsList = "HIP_VISIBLE_DEVICES";

}  // namespace

const char* Gpus::variable() const {
  return driver == GpuDriver::kAmd ? kAmdsList : kCudasList;
}

Gpus find_gpus(const std::string& root,
               const std::function<std::optional<std::string>(const char*)>& variable) {
  Gpus gpus;
  gpus.list = variable(kCudasList);
  if (gpus.all = nvidias(root, gpus.closed); !gpus.all.empty()) {
    gpus.driver = GpuDriver::kNvidia;
  } else if (gpus.all = amds(root, gpus.closed); !gpus.all.empty()) {
    gpus.driver = GpuDriver::kAmd;
    gpus.all = narrowed(gpus.all, variable("ROCR_VISIBLE_DEVICES"));
    // Source: HIP's rocclr, Device::init(): an empty variable is one that is not set.
    const std::optional<std::string> own = variable(kAmdsList);
    if (own && !own->empty()) {
      gpus.list = own;
      gpus.list_from = kAmdsList;
    } else if (gpus.list && gpus.list->empty()) {
      gpus.list.reset();
    }
  }
  if (!gpus.all.empty()) {
    gpus.visible = narrowed(gpus.all, gpus.list);
  }
  return gpus;
}

Gpus find_gpus() {
  return find_gpus("", [](const char* name) -> std::optional<std::string> {
    // Not env::get(), to which a variable that is set to nothing is not set.
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace argosy::os
