#include "apps/doctor/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "argosy/base/strings.h"
#include "argosy/base/text.h"

#include <nlohmann/json.hpp>

namespace argosy::doctor {
namespace {

using Verdict = Finding::Verdict;
using namespace std::chrono_literals;

constexpr auto kTimeForAll = 60s;
constexpr auto kTimeForEach = 30s;

Verdict verdict_of(const std::string& word) {
  return word == "bad" ? Verdict::kBad : word == "note" ? Verdict::kNote : Verdict::kFine;
}

/// What argosy-torch wrote, line by line.
struct TorchSaid {
  std::vector<Finding> findings{};  ///< of "doctor {json}"
  /// Of libtorch's GPUs, by their numbers; "": not known. nullopt: it was not told.
  std::optional<std::vector<std::string>> addresses{};
  std::string tries{};  ///< "GPU 0: copies in its memory", of which no finding came; empty: none
  std::string last{};   ///< the last line that is neither
};

TorchSaid read_lines(const std::string& output) {
  constexpr std::string_view kTries = "doctor tries ";
  constexpr std::string_view kFinding = "doctor {";
  TorchSaid said;
  for (const std::string& line : strings::split(output, '\n')) {
    if (line.starts_with(kTries)) {
      said.tries = line.substr(kTries.size());
      continue;
    }
    const auto json = line.starts_with(kFinding)
                          ? nlohmann::json::parse(line.substr(kFinding.size() - 1), nullptr, false)
                          : nlohmann::json();
    if (json.is_object()) {
      said.tries.clear();
      said.findings.push_back({.subject = json.value("subject", ""),
                               .verdict = verdict_of(json.value("verdict", "")),
                               .text = json.value("text", ""),
                               .advice = json.value("advice", "")});
      if (const auto there = json.find("addresses"); there != json.end()) {
        auto& addresses = said.addresses.emplace();
        for (const auto& address : *there) {
          addresses.push_back(
              strings::to_lower(address.is_string() ? address.get<std::string>() : ""));
        }
      }
    } else if (!strings::trim(line).empty()) {
      said.last = text::printable(line);
    }
  }
  return said;
}

Finding bad_end(const Ran& ran, const TorchSaid& said) {
  const size_t colon = said.tries.find(": ");
  const bool known = colon != std::string::npos;
  return {.subject = known ? said.tries.substr(0, colon) : "argosy-torch",
          .verdict = Verdict::kBad,
          .text = fmt::format("{}{}{}",
                              known ? said.tries.substr(colon + 2) + ": " : "",
                              !ran.end ? "no answer in time"
                              : ran.end->signal != 0
                                  ? fmt::format("killed by signal {}", ran.end->signal)
                                  : fmt::format("ended with code {}", ran.end->code),
                              said.last.empty() ? "" : "; last line: " + said.last),
          .advice =
              "what comes after it was not tried. dmesg and the vendor's tool may say more; "
              "argosy-torch doctor-devices shows all of it"};
}

/// Says where libtorch sees other GPUs than the driver lists.
void compare_counts(Finding& libtorch,
                    const std::vector<os::Gpu>& listed,
                    const std::vector<std::string>& seen) {
  if (listed.size() == seen.size()) {
    return;
  }
  libtorch.text += fmt::format("; the driver lists {} GPU{}, libtorch sees {}",
                               listed.size(),
                               listed.size() == 1 ? "" : "s",
                               seen.size());
  if (seen.size() > listed.size()) {
    libtorch.verdict = std::max(libtorch.verdict, Verdict::kNote);
    libtorch.advice = "one may be part of the processor: leave it out by HIP_VISIBLE_DEVICES";
    return;
  }
  std::vector<std::string> missing;
  for (const os::Gpu& gpu : listed) {
    if (!gpu.address.empty() && std::ranges::count(seen, gpu.address) == 0) {
      missing.push_back(gpu.address);
    }
  }
  libtorch.verdict = Verdict::kBad;
  if (seen.empty()) {
    return;  // whose advice is libtorch's own
  }
  libtorch.advice = fmt::format(
      "see dmesg{}{}: a GPU may have fallen off the bus. One that is divided (MIG) is seen only if "
      "CUDA_VISIBLE_DEVICES names its part",
      missing.empty() ? "" : " for ",
      fmt::join(missing, ", "));
}

/// What is known of the GPU that libtorch numbers so: by its place, for the numbers of the driver
/// are others where GPUs are unlike, or one is missing.
os::Gpu gpu_numbered(const std::vector<os::Gpu>& listed,
                     size_t number,
                     const std::optional<std::vector<std::string>>& addresses) {
  const std::string address = addresses && number < addresses->size() ? (*addresses)[number] : "";
  if (!address.empty()) {
    const auto found = std::ranges::find(listed, address, &os::Gpu::address);
    return found == listed.end() ? os::Gpu{.address = address} : *found;
  }
  const bool alike = !addresses || addresses->size() == listed.size();
  return alike && number < listed.size() ? listed[number] : os::Gpu{};
}

/// Puts around what a GPU does what it is, and what held it up.
void add_facts(Finding& finding, const os::Gpu& gpu, const GpuFacts& facts, uint64_t reasons) {
  std::vector<std::string> texts{finding.text, facts.name, "", gpu.address, facts.links};
  if (facts.memory_bytes != 0) {
    texts[2] = text::memory(facts.memory_bytes);
  }
  if (!gpu.cpus.empty()) {
    texts[3] += " next to cores " + strings::ranges(gpu.cpus);
  }
  if (const std::string slow = slowdowns(reasons); !slow.empty()) {
    texts.push_back("slow while it computed: " + slow);
    finding.verdict = std::max(finding.verdict, Verdict::kNote);
    finding.advice +=
        finding.advice.empty() ? "see to its cooling and power: nvidia-smi -q -d PERFORMANCE" : "";
  }
  std::erase(texts, "");
  finding.text = fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

GpuFacts SeenGpus::facts_of(const os::Gpu& gpu) const {
  const auto found = std::ranges::find(tool.gpus, gpu.address, &GpuFacts::address);
  return gpu.address.empty() || found == tool.gpus.end() ? GpuFacts{} : *found;
}

SeenGpus look_at(os::Gpus gpus) {
  SeenGpus seen{.gpus = std::move(gpus)};
  if (!seen.gpus.visible.empty()) {
    seen.tool = ask_tool(seen.gpus.driver);
  }
  return seen;
}

Finding gpus_finding(const SeenGpus& seen) {
  const size_t all = seen.gpus.all.size();
  const size_t visible = seen.gpus.visible.size();
  Finding finding{.subject = "GPUs",
                  .text = visible == 0 ? "none visible" : fmt::format("{} visible", visible)};
  if (visible != all) {
    finding.text += fmt::format(
        " of {} ({}={})", all, seen.gpus.list_from, seen.gpus.list.value_or("<not set>"));
  }
  if (seen.gpus.closed > 0) {
    finding.text += fmt::format(", {} more that this process may not open", seen.gpus.closed);
  }
  std::set<std::string> words;
  for (const os::Gpu& gpu : seen.gpus.visible) {
    const GpuFacts facts = seen.facts_of(gpu);
    words.insert(facts.name);
    words.insert(facts.driver.empty() ? "" : "driver " + facts.driver);
  }
  words.erase("");
  for (const std::string& word : words) {
    finding.text += ", " + word;
  }
  if (seen.gpus.closed > 0 && all == 0) {
    finding.verdict = Verdict::kNote;
    finding.advice =
        "ask the queue for GPUs, or become a member of the groups of /dev/nvidia* or of /dev/kfd "
        "and /dev/dri/renderD* (video, render)";
  }
  if (!seen.tool.failure.empty()) {
    finding.verdict = Verdict::kNote;
    finding.text += "; " + seen.tool.failure;
    finding.advice = "without it names, drivers, links and clocks are not known";
  }
  return finding;
}

std::vector<Finding> read_devices(const SeenGpus& seen,
                                  const Ran& ran,
                                  const std::map<std::string, uint64_t>& clock_reasons) {
  TorchSaid said = read_lines(ran.output);
  if (!ran.ok()) {
    said.findings.push_back(bad_end(ran, said));
  }
  constexpr std::string_view kGpu = "GPU ";
  for (Finding& finding : said.findings) {
    const auto number =
        finding.subject.starts_with(kGpu)
            ? strings::parse_int(std::string_view(finding.subject).substr(kGpu.size()))
            : std::nullopt;
    if (number && *number >= 0) {
      const os::Gpu gpu =
          gpu_numbered(seen.gpus.visible, static_cast<size_t>(*number), said.addresses);
      const auto reasons = clock_reasons.find(gpu.address);
      add_facts(
          finding, gpu, seen.facts_of(gpu), reasons == clock_reasons.end() ? 0 : reasons->second);
    } else if (finding.subject == "libtorch" && said.addresses) {
      compare_counts(finding, seen.gpus.visible, *said.addresses);
    }
  }
  return said.findings;
}

std::vector<Finding> device_findings(const SeenGpus& seen, const std::string& engine) {
  if (seen.gpus.visible.empty()) {
    return {};
  }
  std::map<std::string, uint64_t> reasons;
  const Result<Ran> ran = run_program(
      {engine, "doctor-devices"},
      {.patience = kTimeForAll + kTimeForEach * seen.gpus.visible.size(), .meanwhile = [&] {
         for (const auto& [address, bits] : ask_clock_reasons(seen.gpus.driver)) {
           reasons[address] |= bits;
         }
       }});
  if (!ran.ok()) {
    return {{.subject = "libtorch",
             .verdict = Verdict::kNote,
             .text = fmt::format("no GPU was tried: {}", ran.failure().what),
             .advice = "make build, or make install, brings argosy-torch",
             .tried = false}};
  }
  return read_devices(seen, *ran, reasons);
}

}  // namespace argosy::doctor
