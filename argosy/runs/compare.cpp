#include "argosy/runs/compare.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "argosy/runs/chart_data.h"
#include "argosy/runs/page_parts.h"

namespace argosy::runs {
namespace {

/// Variables that a launcher gives each process anew, and which say nothing that "ranks" does not.
bool is_launchers(std::string_view name) {
  constexpr std::array<std::string_view, 23> kPrefixesOfLaunchers{"MASTER_",
                                                                  "RANK",
                                                                  "LOCAL_",
                                                                  "GROUP_",
                                                                  "ROLE_",
                                                                  "WORLD_SIZE",
                                                                  "TORCHELASTIC_",
                                                                  "TORCH_NCCL_",
                                                                  "SLURM_",
                                                                  "OMPI_COMM",
                                                                  "PMI_",
                                                                  "PADDLE_",
                                                                  "ARGOSY_STORE",
                                                                  "ARGOSY_TLS",
                                                                  "ARGOSY_TOKEN",
                                                                  "ARGOSY_RUN_ID",
                                                                  "ARGOSY_LOG_",
                                                                  "ARGOSY_LINE_",
                                                                  "ARGOSY_PROGRESS",
                                                                  "ARGOSY_RESTART_",
                                                                  "ARGOSY_DOCS",
                                                                  "FLAGS_selected_",
                                                                  "OMP_WAIT_POLICY"};
  return std::ranges::any_of(kPrefixesOfLaunchers,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// What of run.json can change a run.
std::vector<std::pair<std::string, std::string>> settings_of(const RunConfig& config) {
  nlohmann::ordered_json json = to_json(config);
  for (const char* key : {"format", "name", "state", "message", "exit_code", "started", "ended"}) {
    json.erase(key);
  }
  for (const auto& [name, value] : config.environment) {
    if (is_launchers(name)) {
      json["environment"].erase(name);
    }
  }
  json["host"].erase("pid");
  json["host"].erase("pid_start");
  return flattened(json);
}

}  // namespace

std::vector<Difference> differences(const RunConfig& a, const RunConfig& b) {
  const auto of_a = settings_of(a);
  const auto of_b = settings_of(b);
  const std::map<std::string, std::string> values_a(of_a.begin(), of_a.end());
  const std::map<std::string, std::string> values_b(of_b.begin(), of_b.end());
  const auto value_in = [](const std::map<std::string, std::string>& values,
                           const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<std::string> names;
  for (const auto* pairs : {&of_a, &of_b}) {
    for (const auto& [name, value] : *pairs) {
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  std::vector<Difference> all;
  for (const std::string& name : names) {
    Difference one{.name = name, .a = value_in(values_a, name), .b = value_in(values_b, name)};
    if (one.a != one.b) {
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::vector<ComparedFigure> compared_figures(const MetricsLog& a, const MetricsLog& b) {
  const std::vector<ChartRun> runs{{.label = "a", .log = &a}, {.label = "b", .log = &b}};
  std::vector<ComparedFigure> all;
  for (const std::string& name : chart_names(runs)) {
    for (const NamedCurve& named : a.curves()) {
      if (named.name == name) {
        all.push_back({.a = &named, .b = b.find(name, named.split)});
      }
    }
    for (const NamedCurve& named : b.curves()) {
      if (named.name == name && a.find(name, named.split) == nullptr) {
        all.push_back({.a = nullptr, .b = &named});
      }
    }
  }
  return all;
}

}  // namespace argosy::runs
