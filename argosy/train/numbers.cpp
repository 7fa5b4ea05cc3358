#include "argosy/train/numbers.h"

#include <cmath>
#include <limits>
#include <string>

#include "argosy/base/error.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {

nlohmann::ordered_json to_json(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double number_in(const nlohmann::ordered_json& object, std::string_view field) {
  const auto found = object.find(std::string(field));
  if (found != object.end() && found->is_number()) {
    return found->get<double>();
  }
  if (found != object.end() && found->is_string()) {
    const auto text = found->get<std::string>();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "inf" || text == "-inf") {
      return text == "inf" ? kInfinity : -kInfinity;
    }
    if (text == "nan") {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
  throw CheckpointError("train.state", "expected a number", {std::string(field)});
}

nlohmann::ordered_json to_json(const optim::LRSchedulerState& state) {
  nlohmann::ordered_json object{{"scheduler", state.scheduler},
                                {"unit", static_cast<int64_t>(state.unit)},
                                {"step", state.step},
                                {"base_lrs", state.base_lrs},
                                {"last_lrs", state.last_lrs},
                                {"num_bad_epochs", state.num_bad_epochs},
                                {"cooldown_counter", state.cooldown_counter}};
  if (state.best.has_value()) {
    object["best"] = *state.best;
  }
  return object;
}

optim::LRSchedulerState schedule_state(const nlohmann::ordered_json& object) {
  try {
    optim::LRSchedulerState state{
        .step = object.at("step").get<int64_t>(),
        .base_lrs = object.at("base_lrs").get<std::vector<double>>(),
        .scheduler = object.at("scheduler").get<std::string>(),
        .unit = static_cast<optim::ScheduleUnit>(object.at("unit").get<int64_t>()),
        .last_lrs = object.at("last_lrs").get<std::vector<double>>(),
        .num_bad_epochs = object.at("num_bad_epochs").get<int64_t>(),
        .cooldown_counter = object.at("cooldown_counter").get<int64_t>()};
    if (object.contains("best")) {
      state.best = object.at("best").get<double>();
    }
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(
        "train.state", std::string("not where a schedule stands: ") + error.what(), {"schedule"});
  }
}

}  // namespace argosy::train::detail
