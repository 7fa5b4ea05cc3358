#include "argosy/train/step_figures.h"

#include <algorithm>
#include <array>

#include "argosy/comm/collectives.h"
#include "argosy/comm/json.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {

LossMean& StepFigures::mean_of(std::string_view name) {
  const auto found = std::find_if(
      means_.begin(), means_.end(), [&](const auto& figure) { return figure.first == name; });
  return found != means_.end() ? found->second : means_.emplace_back(name, LossMean()).second;
}

void StepFigures::add(std::string_view name, double mean, double count) {
  mean_of(name).update(mean, count);
}

Logs StepFigures::compute(const comm::Group& group) const {
  StepFigures all = *this;
  std::vector<std::string> names;
  for (const auto& [name, mean] : means_) {
    names.push_back(name);
  }
  if (group.size() > 1) {
    const auto of_ranks = comm::all_gather_object(nlohmann::json(names), group);
    names.clear();
    for (const nlohmann::json& of_rank : of_ranks) {
      for (const nlohmann::json& name : of_rank) {
        if (std::find(names.begin(), names.end(), name.get<std::string>()) == names.end()) {
          names.push_back(name.get<std::string>());
        }
      }
    }
  }
  Logs logs;
  for (const std::string& name : names) {
    logs.set(name, all.mean_of(name).compute(group));
  }
  return logs;
}

nlohmann::ordered_json StepFigures::state() const {
  auto state = nlohmann::ordered_json::array();
  for (const auto& [name, mean] : means_) {
    state.push_back({{"name", name}, {"sums", mean.state()}});
  }
  return state;
}

void StepFigures::merge_state(const nlohmann::ordered_json& state) {
  for (const nlohmann::ordered_json& figure : state) {
    mean_of(figure.at("name").get<std::string>())
        .merge_state(figure.at("sums").get<std::array<metrics::State, 2>>());
  }
}

}  // namespace argosy::train::detail
