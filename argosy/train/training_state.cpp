#include "argosy/train/training_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include <torch/nn/module.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/states.h"
#include "argosy/checkpoint/together.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/engine/cpu.h"
#include "argosy/train/epoch_sums.h"
#include "argosy/train/feed.h"

namespace argosy::train::detail {
namespace {

using nlohmann::ordered_json;

constexpr const char* kCallbackTensors = "callbacks";

/// What every capture has.
checkpoint::Snapshot at_rest(const Core& core) {
  checkpoint::Snapshot now;
  now.parts.emplace_back("model", engine::state_dict(*core.network.module));
  now.values["steps"] = core.steps;
  now.values["memory_format"] = engine::to_string(core.network.memory_format());
  if (core.optimizer.has_value()) {
    checkpoint::put_state(now, "optimizer", core.optimizer->state_dict());
  }
  if (core.schedule.has_value()) {
    checkpoint::put_state(now, "schedule", core.schedule->state_dict());
  }
  if (core.precision.scales()) {
    now.values["scaler"] = core.precision.state();
  }
  if (core.average.has_value()) {
    checkpoint::put_state(now, "ema", core.average->state_dict());
  }
  now.step = core.steps;
  return now;
}

ordered_json to_json(const Place& place) {
  ordered_json legs = ordered_json::array();
  for (const Leg& leg : place.legs) {
    legs.push_back({{"ranks", leg.ranks}, {"batch_size", leg.batch_size}, {"done", leg.done}});
  }
  return {{"epoch", place.epoch},
          {"batch", place.batch},
          {"at_end", place.at_end},
          {"ranks", place.ranks},
          {"virtual_ranks", place.virtual_ranks},
          {"virtual_ranks_asked", place.asked},
          {"seed", place.seed.value_or(0)},
          {"threads", place.threads},
          {"kernels", place.kernels},
          {"begun_step", place.begun_step},
          {"legs", std::move(legs)},
          {"loss", place.loss},
          {"samples", place.samples},
          {"stop_after_epoch", place.stop_after_epoch},
          {"stopped", place.stopped},
          {"reason", place.reason},
          {"begun_from", place.begun_from}};
}

/// A checkpoint itself is what `checkpoint` asks for.
ordered_json to_json(const Requests& requests) {
  return {{"stop_now", requests.stop_now},
          {"stop_after_epoch", requests.stop_after_epoch},
          {"reason", requests.reason}};
}

/// Those that keep something; of several with one name the second is "name#2".
template <typename Each>
void for_each_named(std::span<const AnyCallback> callbacks, const Each& each) {
  std::map<std::string, int> seen;
  for (const AnyCallback& callback : callbacks) {
    if (const std::string name = callback->name(); !name.empty()) {
      const int number = ++seen[name];
      each(number == 1 ? name : name + "#" + std::to_string(number), *callback);
    }
  }
}

}  // namespace

checkpoint::Snapshot capture(const Core& core) {
  return at_rest(core);
}

checkpoint::Snapshot capture(const Core& core, const Place& place, const Surroundings& around) {
  checkpoint::Snapshot now = at_rest(core);
  now.epoch = place.epoch;
  now.values["place"] = to_json(place);
  ordered_json callbacks = ordered_json::object();
  engine::StateDict tensors;
  for_each_named(around.callbacks, [&](const std::string& name, Callback& callback) {
    callbacks[name] = callback.state();
    for (const auto& [key, tensor] : callback.tensors()) {
      tensors.set(name + "/" + key, tensor);
    }
  });
  if (!tensors.empty()) {
    now.parts.emplace_back(kCallbackTensors, std::move(tensors));
  }
  now.values["callbacks"] = std::move(callbacks);

  checkpoint::put_rank_state(now, "model", *core.network.module, core.group.rank());
  now.rank_values["loader"] = ordered_json::parse(around.feed.state().to_json());
  now.values["loader"] = now.rank_values["loader"];
  now.rank_values["requests"] = to_json(core.requests);
  if (place.in_epoch()) {
    put_sums(core, around.figures, now.rank_values);
  }
  return now;
}

namespace {

void restore_model(const Core& core,
                   const checkpoint::Snapshot& snapshot,
                   const std::string& path) {
  const engine::StateDict* model = snapshot.find("model");
  if (model == nullptr) {
    throw CheckpointError("train.resume", "the checkpoint has no model", {.path = path});
  }
  engine::load_state_dict(*core.network.module,
                          *model,
                          {.source = path,
                           .advice = "Resume with the options of the model with which the "
                                     "training began, or train in another folder."});
}

/// Collective. The state of an optimizer lies as its weights do.
void restore_memory_format(Core& core, const checkpoint::Snapshot& snapshot) {
  const std::optional<engine::MemoryFormat> format =
      engine::memory_format(checkpoint::read_value("memory_format", [&] {
        return checkpoint::value_of(snapshot.values, "memory_format").get<std::string>();
      }));
  if (format.has_value() && *format != engine::MemoryFormat::kAuto) {
    core.network.decide_memory_format(*format);
  }
}

void restore_others(Core& core, const checkpoint::Snapshot& snapshot) {
  if (core.optimizer.has_value()) {
    core.optimizer->load_state_dict(
        checkpoint::get_state<optim::OptimizerState>(snapshot, "optimizer"));
  }
  if (core.schedule.has_value()) {
    core.schedule->load_state_dict(
        checkpoint::get_state<optim::LRSchedulerState>(snapshot, "schedule"));
  }
  if (core.precision.scales()) {
    core.precision.load_state(checkpoint::value_of(snapshot.values, "scaler"));
  }
  if (core.average.has_value()) {
    core.average->load_state_dict(checkpoint::get_state<optim::EmaState>(snapshot, "ema"));
  }
  core.steps = checkpoint::read_value(
      "steps", [&] { return checkpoint::value_of(snapshot.values, "steps").get<int64_t>(); });
}

}  // namespace

void restore(Core& core, const checkpoint::Snapshot& snapshot, const std::string& path) {
  checkpoint::together(
      core.group, "train.resume", path, [&] { restore_model(core, snapshot, path); });
  restore_memory_format(core, snapshot);
  checkpoint::together(core.group, "train.resume", path, [&] { restore_others(core, snapshot); });
  engine::release_free_memory();  // what reading has left
}

void check_schedule(const Core& core,
                    const checkpoint::Snapshot& snapshot,
                    const std::string& path) {
  if (core.schedule.has_value() || !snapshot.values.contains("schedule")) {
    return;
  }
  const std::string name =
      checkpoint::get_state<optim::LRSchedulerState>(snapshot, "schedule").scheduler;
  throw CheckpointError(
      "train.resume",
      fmt::format(
          "the checkpoint's training has a schedule ({}), this one has none: its rate would "
          "stay where it is. Give prepare() the schedule (argosy train: --schedule, --warmup), or "
          "begin a new training with "
          "load()",
          name),
      {.path = path});
}

std::optional<Place> place_in(const checkpoint::Snapshot& snapshot) {
  if (!snapshot.values.contains("place")) {
    return std::nullopt;
  }
  return checkpoint::read_value("place", [&] {
    const ordered_json& saved = snapshot.values.at("place");
    Place place{.epoch = saved.at("epoch").get<int64_t>(),
                .batch = saved.at("batch").get<int64_t>(),
                .at_end = saved.at("at_end").get<bool>(),
                .ranks = saved.at("ranks").get<int64_t>(),
                .begun_step = saved.at("begun_step").get<int64_t>(),
                .loss = saved.at("loss").get<double>(),
                .samples = saved.at("samples").get<int64_t>(),
                .stop_after_epoch = saved.at("stop_after_epoch").get<bool>(),
                .stopped = saved.at("stopped").get<bool>(),
                .reason = saved.at("reason").get<std::string>(),
                .begun_from = saved.value("begun_from", std::string())};
    place.virtual_ranks = saved.value("virtual_ranks", place.ranks);
    place.asked = saved.value("virtual_ranks_asked", false);
    if (saved.contains("seed")) {
      place.seed = saved.at("seed").get<uint64_t>();
    }
    place.threads = saved.value("threads", 0);
    place.kernels = saved.value("kernels", std::string());
    for (const ordered_json& leg : saved.at("legs")) {
      place.legs.push_back({.ranks = leg.at("ranks").get<int64_t>(),
                            .batch_size = leg.at("batch_size").get<int64_t>(),
                            .done = leg.at("done").get<int64_t>()});
    }
    return std::optional(std::move(place));
  });
}

namespace {

/// Who used a tensor of a file that could not be read did not learn of it.
void check_read(const engine::StateDict& used) {
  for (const auto& [name, tensor] : used) {
    if (const auto memory = engine::coming_memory_of(tensor)) {
      memory->check();
    }
  }
}

}  // namespace

void restore_callbacks(const checkpoint::Snapshot& snapshot,
                       const std::string& path,
                       std::span<const AnyCallback> callbacks) {
  checkpoint::read_value("callbacks", [&] {
    const ordered_json& saved = checkpoint::value_of(snapshot.values, "callbacks");
    for_each_named(callbacks, [&](const std::string& name, Callback& callback) {
      if (const auto found = saved.find(name); found != saved.end()) {
        callback.load_state(*found);
      } else if (!callback.tensors().empty()) {
        throw CheckpointError(
            "train.resume",
            fmt::format(
                "the checkpoint has nothing of the callback \"{}\", whose tensors would "
                "begin anew in the middle of a training. Give the callback the name that it "
                "was saved by, leave it out, or begin a new training with load()",
                name),
            {.path = path, .key = name});
      }
      engine::StateDict own;
      if (const engine::StateDict* all = snapshot.find(kCallbackTensors)) {
        for (const auto& [key, tensor] : *all) {
          if (key.starts_with(name + "/")) {
            own.set(key.substr(name.size() + 1), tensor);
          }
        }
      }
      if (!own.empty()) {
        callback.load_tensors(own);
        check_read(own);
      }
    });
  });
}

void restore_rank(Core& core, const checkpoint::Snapshot& snapshot, const Place& place) {
  if (core.group.size() == place.ranks) {
    checkpoint::load_rank_state(snapshot, "model", *core.network.module);
  } else {
    checkpoint::load_generators(snapshot);
  }
}

Requests requests_in(const checkpoint::Snapshot& snapshot, std::span<const ordered_json> gone) {
  Requests all;
  const auto add = [&](const ordered_json& rank_values) {
    if (!rank_values.contains("requests")) {  // of a rank that was not there
      return;
    }
    const ordered_json& saved = rank_values.at("requests");
    all.stop_now = all.stop_now || saved.at("stop_now").get<bool>();
    all.stop_after_epoch = all.stop_after_epoch || saved.at("stop_after_epoch").get<bool>();
    if (all.reason.empty()) {
      all.reason = saved.at("reason").get<std::string>();
    }
  };
  checkpoint::read_value("requests", [&] {
    add(snapshot.rank_values);
    std::for_each(gone.begin(), gone.end(), add);
  });
  return all;
}

data::LoaderState loader_state_in(const checkpoint::Snapshot& snapshot) {
  const bool was_there = snapshot.rank_values.contains("loader");
  const ordered_json& values = was_there ? snapshot.rank_values : snapshot.values;
  return data::LoaderState::from_json(checkpoint::value_of(values, "loader").dump());
}

}  // namespace argosy::train::detail
