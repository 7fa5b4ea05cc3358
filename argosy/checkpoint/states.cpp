#include "argosy/checkpoint/states.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include "argosy/base/error.h"
#include "argosy/engine/random_state.h"

namespace argosy::checkpoint {
namespace {

using nlohmann::ordered_json;

const engine::StateDict& tensors_of(const Snapshot& snapshot, const std::string& name) {
  const engine::StateDict* found = snapshot.find(name);
  if (found == nullptr) {
    throw CheckpointError(
        "checkpoint.resume", fmt::format("the checkpoint has no \"{}\"", name), {.key = name});
  }
  return *found;
}

/// "buffer." for "model", which fit() saves; other modules have their names in between.
std::string buffers_of(const std::string& name) {
  return name == "model" ? "buffer." : fmt::format("buffer.{}/", name);
}

}  // namespace

const ordered_json& value_of(const ordered_json& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) {
    throw CheckpointError(
        "checkpoint.resume",
        fmt::format("the checkpoint has no value \"{}\": it was saved without it", name),
        {.key = name});
  }
  return *found;
}

void put_state(Snapshot& snapshot, const std::string& name, const optim::OptimizerState& state) {
  engine::StateDict flat;
  ordered_json with_state = ordered_json::array();
  for (const auto& [parameter, entries] : state.parameters) {
    if (!entries.empty()) {
      with_state.push_back(parameter);
    }
    for (const auto& [entry, tensor] : entries) {
      flat.set(parameter + "/" + entry, tensor);
    }
  }
  snapshot.parts.emplace_back(name, std::move(flat));
  ordered_json groups = ordered_json::array();
  for (const optim::GroupInfo& group : state.groups) {
    groups.push_back({{"lr", group.lr}, {"names", group.names}});
  }
  snapshot.values[name] = {{"name", state.optimizer},
                           {"groups", std::move(groups)},
                           {"with_state", std::move(with_state)}};
}

template <>
optim::OptimizerState get_state(const Snapshot& snapshot, const std::string& name) {
  optim::OptimizerState state;
  std::vector<std::string> with_state;  // of an older checkpoint nobody knows
  read_value(name, [&] {
    const ordered_json& saved = value_of(snapshot.values, name);
    state.optimizer = saved.at("name").get<std::string>();
    for (const ordered_json& group : saved.at("groups")) {
      state.groups.push_back({.names = group.at("names").get<std::vector<std::string>>(),
                              .lr = group.at("lr").get<double>()});
    }
    with_state = saved.value("with_state", std::vector<std::string>());
  });
  std::unordered_map<std::string, std::size_t> places;  // others may have come between
  for (const auto& [entry, tensor] : tensors_of(snapshot, name)) {
    const auto slash = entry.rfind('/');
    const std::string parameter = entry.substr(0, slash);
    const auto [known, is_new] = places.try_emplace(parameter, state.parameters.size());
    if (is_new) {
      state.parameters.emplace_back(parameter, engine::StateDict());
    }
    state.parameters[known->second].second.set(entry.substr(slash + 1), tensor);
  }
  for (const std::string& parameter : with_state) {
    if (!places.contains(parameter)) {
      throw CheckpointError(
          "checkpoint.resume",
          fmt::format("the state of {} is missing: it had some when it was saved", parameter),
          {.key = name});
    }
  }
  return state;
}

ordered_json to_json(const optim::LRSchedulerState& state) {
  ordered_json object{{"scheduler", state.scheduler},
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

optim::LRSchedulerState schedule_state(const ordered_json& object) {
  return read_value("schedule", [&] {
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
  });
}

ordered_json to_json(const optim::GradScalerState& state) {
  return {{"scale", state.scale},
          {"growth_factor", state.growth_factor},
          {"backoff_factor", state.backoff_factor},
          {"growth_interval", state.growth_interval},
          {"growth_tracker", state.growth_tracker}};
}

optim::GradScalerState scaler_state(const ordered_json& object) {
  const auto whole = [&](const char* field) {
    const double number = object.at(field).get<double>();
    if (!(number == std::floor(number) && std::abs(number) < 0x1p63)) {
      throw CheckpointError("checkpoint.resume", "expected a whole number", {.key = field});
    }
    return static_cast<int64_t>(number);
  };
  return read_value("scaler", [&] {
    return optim::GradScalerState{.scale = object.at("scale").get<double>(),
                                  .growth_factor = object.at("growth_factor").get<double>(),
                                  .backoff_factor = object.at("backoff_factor").get<double>(),
                                  .growth_interval = whole("growth_interval"),
                                  .growth_tracker = whole("growth_tracker")};
  });
}

void put_state(Snapshot& snapshot, const std::string& name, const optim::LRSchedulerState& state) {
  snapshot.values[name] = to_json(state);
}

template <>
optim::LRSchedulerState get_state(const Snapshot& snapshot, const std::string& name) {
  return schedule_state(value_of(snapshot.values, name));
}

void put_state(Snapshot& snapshot, const std::string& name, const optim::GradScalerState& state) {
  snapshot.values[name] = to_json(state);
}

template <>
optim::GradScalerState get_state(const Snapshot& snapshot, const std::string& name) {
  return scaler_state(value_of(snapshot.values, name));
}

void put_state(Snapshot& snapshot, const std::string& name, const optim::EmaState& state) {
  snapshot.parts.emplace_back(name, state.averages);
  snapshot.values[name + "_updates"] = state.num_updates;
}

template <>
optim::EmaState get_state(const Snapshot& snapshot, const std::string& name) {
  const std::string updates = name + "_updates";
  return {.num_updates = read_value(
              updates, [&] { return value_of(snapshot.values, updates).get<int64_t>(); }),
          .averages = tensors_of(snapshot, name)};
}

void put_rank_state(Snapshot& snapshot,
                    const std::string& name,
                    const torch::nn::Module& module,
                    int rank) {
  for (const auto& [generator, state] : engine::random_state(module)) {
    snapshot.rank_tensors.set(generator, state);
  }
  for (const auto& buffer : module.named_buffers()) {
    snapshot.of_rank_0.emplace(name, buffer.key());
    if (rank != 0 && buffer.value().defined()) {
      snapshot.rank_tensors.set(buffers_of(name) + buffer.key(), buffer.value().detach());
    }
  }
}

void load_generators(const Snapshot& snapshot) {
  engine::StateDict generators;
  for (const auto& [entry, tensor] : snapshot.rank_tensors) {
    if (entry.starts_with("random.")) {
      generators.set(entry, tensor);
    }
  }
  engine::load_random_state(generators);
}

void load_rank_state(const Snapshot& snapshot,
                     const std::string& name,
                     const torch::nn::Module& module) {
  load_generators(snapshot);
  const c10::NoGradGuard no_grad;
  for (auto& buffer : module.named_buffers()) {
    if (const at::Tensor* saved = snapshot.rank_tensors.find(buffers_of(name) + buffer.key())) {
      buffer.value().copy_(*saved);
    }
  }
}

}  // namespace argosy::checkpoint
