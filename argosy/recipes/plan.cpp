#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/engine/device.h"
#include "argosy/optim/optim.h"
#include "argosy/recipes/clicks.h"
#include "argosy/recipes/optimizers.h"
#include "argosy/recipes/parts.h"
#include "argosy/recipes/run.h"
#include "argosy/recipes/schedules.h"
#include "argosy/recipes/traffic.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

using nlohmann::ordered_json;

ordered_json data_of(const Assembly& assembly, const TrainSettings& resolved) {
  auto splits = ordered_json::object();
  for (const std::string& split : assembly.splits()) {
    splits[split] = assembly.size(split);
  }
  const std::string evaluation = assembly.evaluation_split();
  ordered_json json{
      {"splits", std::move(splits)},
      {"trained_on", assembly.training_split()},
      {"evaluated_on", evaluation.empty() ? ordered_json(nullptr) : ordered_json(evaluation)}};
  json.update(assembly.about_data(resolved));
  return json;
}

ordered_json model_of(const Assembly& assembly) {
  ordered_json json{{"name", assembly.model_text}};
  json.update(assembly.about_model());
  return json;
}

ordered_json training_of(const TrainSettings& settings, const Lengths& lengths, int processes) {
  const int64_t updates =
      std::min(lengths.updates(), settings.num_iters.value_or(lengths.updates()));
  const int64_t ranks = settings.virtual_ranks > 0 ? settings.virtual_ranks : processes;
  return {{"processes", processes},
          {"virtual_ranks", ranks},
          {"samples_per_update", settings.batch_size * ranks * settings.accumulate},
          {"updates_per_epoch", lengths.updates_per_epoch},
          {"updates", updates}};
}

void add_lines(std::string& text, const char* title, const ordered_json& object) {
  text += fmt::format("{}\n", title);
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) {
      continue;
    }
    const std::string shown = value.is_string()           ? value.get<std::string>()
                              : value.is_number_integer() ? text::count(value.get<int64_t>())
                                                          : value.dump();
    text += fmt::format("  {:<18} {}\n", name, shown);
  }
}

}  // namespace

ordered_json Plan::to_json() const {
  return {{"command", "train"},
          {"dry_run", true},
          {"options", options},
          {"data", data},
          {"model", model},
          {"training", training}};
}

std::string Plan::to_string() const {
  std::string text;
  add_lines(text, "options", options);
  add_lines(text, "data", data);
  add_lines(text, "model", model);
  add_lines(text, "training", training);
  return text;
}

Plan plan(const TrainSettings& settings, int processes) {
  if (is_of_clicks(settings)) {
    return plan_clicks(settings);
  }
  refuse_servers(settings);
  engine::check_device_word(settings.device);  // a machine without one may plan, too
  const std::unique_ptr<Assembly> assembly = assemble(wanted_of(settings));
  const TrainSettings resolved = resolve(settings, *assembly);
  strategy_of(resolved).validate();
  const Lengths lengths = lengths_of(
      resolved, *assembly, resolved.virtual_ranks > 0 ? resolved.virtual_ranks : processes);
  // Made and dropped: what is wrong with their options shows here.
  const optim::Optimizer optimizer =
      make_optimizer(resolved, engine::named_parameters(*assembly->model.module));
  static_cast<void>(make_schedule(resolved.schedule, optimizer, lengths));
  check_traffic(resolved.traffic, optimizer);
  assembly->check(resolved);
  return {.options = to_json(resolved),
          .data = data_of(*assembly, resolved),
          .model = model_of(*assembly),
          .training = training_of(resolved, lengths, processes)};
}

}  // namespace argosy::recipes
