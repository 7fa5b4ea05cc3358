#include "apps/doctor/gpu_tools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "argosy/base/strings.h"

#include "apps/doctor/program.h"
#include <nlohmann/json.hpp>

namespace argosy::doctor {
namespace {

constexpr int64_t kMostGpus = 1024;

/// "00000000:17:00.0" of nvidia-smi and "0000:C1:00.0" of rocm-smi, as the kernel has them.
std::string kernel_address(std::string_view address) {
  const size_t domain = address.find(':');
  return strings::to_lower(
      domain != std::string_view::npos && domain > 4 ? address.substr(domain - 4) : address);
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (const std::string& field : strings::split(line, ',')) {
    fields.emplace_back(strings::trim(field));
  }
  return fields;
}

/// The value of the first key that is `name`, in any case: versions of rocm-smi differ in it.
std::string value_of(const nlohmann::json& object, std::string_view name) {
  for (const auto& [key, value] : object.items()) {
    if (strings::to_lower(key) == name) {
      return value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  return "";
}

/// "XGMI to 3 others", of the GPU that rocm-smi numbers so.
std::string links_of(const nlohmann::json& system, int64_t number) {
  int count = 0;
  for (const auto& [key, value] : system.items()) {
    constexpr std::string_view kPair = "link type between drm devices ";
    const std::string pair = strings::to_lower(key);
    const size_t at = pair.find(kPair);
    if (at == std::string::npos || value != "XGMI") {
      continue;
    }
    const std::vector<std::string> words = strings::split(pair.substr(at + kPair.size()), ' ');
    const std::string own = std::to_string(number);
    count += words.front() == own || words.back() == own ? 1 : 0;
  }
  return count == 0 ? "" : fmt::format("XGMI to {} other{}", count, count == 1 ? "" : "s");
}

/// What a tool wrote; nullopt, and `failure` is set: it did not work.
std::optional<std::string> output_of(const std::vector<std::string>& args, std::string* failure) {
  const Result<Ran> ran = run_program(args);
  if (!ran.ok()) {
    *failure = fmt::format("{} cannot be run: {}", args[0], ran.failure().what);
  } else if (!ran->end) {
    *failure = fmt::format("{} does not end", args[0]);
  } else if (!ran->ok()) {
    *failure = fmt::format("{} failed with code {}: {}",
                           args[0],
                           ran->end->shell_code(),
                           strings::split(ran->output, '\n').front());
  } else {
    return ran->output;
  }
  return std::nullopt;
}

}  // namespace

std::vector<GpuFacts> read_nvidia_smi(const std::string& csv) {
  std::vector<GpuFacts> gpus;
  for (const std::string& line : strings::split(csv, '\n')) {
    const std::vector<std::string> fields = fields_of(line);
    const std::optional<int64_t> index = strings::parse_int(fields[0]);
    if (fields.size() < 5 || !index || *index < 0 || *index >= kMostGpus) {
      continue;
    }
    const auto place = static_cast<size_t>(*index);
    gpus.resize(std::max(gpus.size(), place + 1));
    gpus[place] = {.address = kernel_address(fields[1]),
                   .name = fields[4],
                   .driver = fields[2],
                   .memory_bytes = strings::parse_int(fields[3]).value_or(0) << 20};
  }
  return gpus;
}

void add_nvlinks(const std::string& text, std::vector<GpuFacts>& gpus) {
  std::map<size_t, std::pair<int, int>> links;  // by GPU, those that work and all
  std::map<size_t, std::string> speed;
  size_t gpu = gpus.size();
  for (const std::string& line : strings::split(text, '\n')) {
    const std::string_view words = strings::trim(line);
    const size_t colon = words.find(':');
    if (colon == std::string_view::npos) {
      continue;
    }
    const std::string_view value = strings::trim(words.substr(colon + 1));
    if (words.starts_with("GPU ")) {
      const auto number = strings::parse_int(words.substr(4, colon - 4));
      gpu = number && *number >= 0 ? static_cast<size_t>(*number) : gpus.size();
    } else if (words.starts_with("Link ") && gpu < gpus.size()) {
      const bool works = value.ends_with("/s");
      links[gpu].first += works ? 1 : 0;
      ++links[gpu].second;
      speed[gpu] = works ? value : speed[gpu];
    }
  }
  for (const auto& [index, count] : links) {
    const auto [work, all] = count;
    gpus[index].links =
        work == 0     ? fmt::format("none of {} NVLinks active", all)
        : work == all ? fmt::format("{} NVLinks of {}", all, speed[index])
                      : fmt::format("{} of {} NVLinks active, of {}", work, all, speed[index]);
  }
}

std::map<std::string, uint64_t> read_clock_reasons(const std::string& csv) {
  std::map<std::string, uint64_t> reasons;
  for (const std::string& line : strings::split(csv, '\n')) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != 2 || !fields[1].starts_with("0x")) {
      continue;  // "[N/A]", of cards that do not tell
    }
    uint64_t bits = 0;
    std::from_chars(fields[1].data() + 2, fields[1].data() + fields[1].size(), bits, 16);
    reasons[kernel_address(fields[0])] = bits;
  }
  return reasons;
}

std::string slowdowns(uint64_t clock_reasons) {
  // nvmlClocksThrottleReason… of NVML's manual.
  constexpr std::array<std::pair<uint64_t, const char*>, 4> kReasons{
      {{0x08, "hardware slowdown"},
       {0x20, "too hot (the driver slows it down)"},
       {0x40, "too hot (the hardware slows it down)"},
       {0x80, "power brake of the power supply"}}};
  std::vector<const char*> words;
  for (const auto& [bit, word] : kReasons) {
    if ((clock_reasons & bit) != 0) {
      words.push_back(word);
    }
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<GpuFacts> read_rocm_smi(const std::string& output) {
  const size_t begin = output.find('{');
  const auto all = begin == std::string::npos
                       ? nlohmann::json()
                       : nlohmann::json::parse(output.substr(begin), nullptr, false);
  std::vector<GpuFacts> gpus;
  if (!all.is_object()) {
    return gpus;
  }
  const nlohmann::json system = all.value("system", nlohmann::json::object());
  for (const auto& [key, card] : all.items()) {
    constexpr std::string_view kCard = "card";
    const auto number = key.starts_with(kCard)
                            ? strings::parse_int(std::string_view(key).substr(kCard.size()))
                            : std::nullopt;
    if (!number || !card.is_object()) {
      continue;
    }
    gpus.push_back(
        {.address = kernel_address(value_of(card, "pci bus")),
         .name = value_of(card, "card series"),
         .driver = value_of(system, "driver version"),
         .memory_bytes = strings::parse_int(value_of(card, "vram total memory (b)")).value_or(0),
         .links = links_of(system, *number)});
  }
  return gpus;
}

ToolSaid ask_tool(os::GpuDriver driver) {
  const bool amd = driver == os::GpuDriver::kAmd;
  const std::string words =
      amd ? "rocm-smi --showbus --showproductname --showdriverversion --showmeminfo vram "
            "--showtopotype --json"
          : "nvidia-smi --query-gpu=index,pci.bus_id,driver_version,memory.total,name "
            "--format=csv,noheader,nounits";
  ToolSaid said;
  const auto text = output_of(strings::split(words, ' '), &said.failure);
  if (!text) {
    return said;
  }
  said.gpus = amd ? read_rocm_smi(*text) : read_nvidia_smi(*text);
  if (said.gpus.empty()) {
    said.failure = fmt::format(
        "{} lists no GPU: {}", amd ? "rocm-smi" : "nvidia-smi", text->substr(0, text->find('\n')));
  } else if (std::string ignored; !amd) {
    add_nvlinks(output_of({"nvidia-smi", "nvlink", "--status"}, &ignored).value_or(""), said.gpus);
  }
  return said;
}

std::map<std::string, uint64_t> ask_clock_reasons(os::GpuDriver driver) {
  if (driver != os::GpuDriver::kNvidia) {
    return {};
  }
  // The drivers' new name for it, and the one that they had up to 2023.
  for (const char* const field : {"clocks_event_reasons", "clocks_throttle_reasons"}) {
    std::string ignored;
    const std::string query = fmt::format("--query-gpu=pci.bus_id,{}.active", field);
    if (const auto text = output_of({"nvidia-smi", query, "--format=csv,noheader"}, &ignored)) {
      return read_clock_reasons(*text);
    }
  }
  return {};
}

}  // namespace argosy::doctor
