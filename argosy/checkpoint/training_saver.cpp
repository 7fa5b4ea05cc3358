#include "argosy/checkpoint/training_saver.h"

#include <fmt/format.h>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/newest_together.h"
#include "argosy/checkpoint/set_aside.h"
#include "argosy/checkpoint/together.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/cpu.h"

namespace argosy::checkpoint {
namespace {

constexpr const char* kProgress = "progress";
constexpr const char* kSteps = "steps";  // as fit() calls them
constexpr const char* kVirtualRanks = "virtual_ranks";

/// Of "model" as fit() calls it.
std::string format_of(const std::string& module) {
  return module == "model" ? "memory_format" : module + "_memory_format";
}

TrainingProgress progress_in(const Snapshot& saved) {
  TrainingProgress at{.step = saved.step, .epoch = saved.epoch, .score = saved.score};
  if (const auto own = saved.values.find(kProgress); own != saved.values.end()) {
    at.values = *own;
  }
  return at;
}

}  // namespace

TrainingSaver::TrainingSaver(std::string directory, const SaverOptions& options, comm::Group group)
    : group_(std::move(group)), saver_(std::move(directory), options, group_) {}

std::string TrainingSaver::take_name(std::string name, const char* usual) {
  if (name.empty()) {
    name = usual;
  }
  ARGOSY_CHECK(
      name != kProgress && name != kSteps && name != kVirtualRanks && names_.insert(name).second,
      "checkpoint.training",
      "the name \"{}\" is taken: give a second one of a kind a name of its own, "
      "add(object, \"name\")",
      name);
  return name;
}

void TrainingSaver::add_module(const torch::nn::Module& module, std::string name) {
  modules_.push_back({.name = take_name(std::move(name), "model"), .module = &module});
}

void TrainingSaver::add_loader(const std::function<data::LoaderState()>& state,
                               const std::function<void(const data::LoaderState&)>& load,
                               const std::function<void(int64_t)>& set_epoch,
                               std::string name) {
  name = take_name(std::move(name), "loader");
  const auto load_state = [name, state, load, set_epoch](const Snapshot& saved) {
    const auto at = data::LoaderState::from_json(value_of(saved.rank_values, name).dump());
    load(at);
    if (at.batches >= 0 && at.position == 0 && at.epoch == saved.epoch + 1) {
      // Saved after the last batch, before the loop counted on: nothing is left of its epoch.
      set_epoch(saved.epoch);
      data::LoaderState rest = state();
      rest.position = rest.batches;
      load(rest);
    }
  };
  pieces_.push_back({.save =
                         [name, state](Snapshot& now) {
                           now.rank_values[name] = nlohmann::ordered_json::parse(state().to_json());
                         },
                     .load = load_state});
}

Saved TrainingSaver::save(const TrainingProgress& at) {
  if (!saved_ && (!group_.valid() || group_.rank() == 0)) {
    set_aside_later(saver_.directory(), begun_);
  }
  saved_ = true;
  Snapshot now{.step = at.step, .epoch = at.epoch, .score = at.score};
  const int rank = group_.valid() ? group_.rank() : 0;
  for (const Module& each : modules_) {
    now.parts.emplace_back(each.name, engine::state_dict(*each.module));
    put_rank_state(now, each.name, *each.module, rank);
    if (each.format) {
      now.values[format_of(each.name)] = engine::to_string(each.format());
    }
  }
  for (const Piece& piece : pieces_) {
    piece.save(now);
  }
  now.values[kSteps] = at.step;
  now.values[kVirtualRanks] = virtual_ranks();
  now.values[kProgress] = at.values;
  return saver_.save(now);
}

/// To which all loaders' batches are dealt, or 0.
int64_t TrainingSaver::virtual_ranks() const {
  return dealt_to_.size() == 1 ? *dealt_to_.begin() : 0;
}

/// What this rank resumes. Where other processes saved it, all have what the first one had: virtual
/// rank 0's buffers, and generators that fleet::updates() seeds.
Snapshot TrainingSaver::read(const std::string& path) const {
  const int rank = group_.valid() ? group_.rank() : 0;
  const int ranks = group_.valid() ? group_.size() : 1;
  const Checkpoint file(path);
  const int64_t before = file.values().value(kVirtualRanks, int64_t{0});
  const int64_t now = virtual_ranks();
  if (before > 0 && now > 0 && before != now) {
    throw CheckpointError(
        "checkpoint.resume",
        fmt::format("the training has {} virtual ranks, and the loader's batches are dealt to {}. "
                    "Call fleet::init({{.virtual_ranks = {}}}) and loop over fleet::updates()",
                    before,
                    now,
                    before),
        {.path = path});
  }
  const bool others = file.manifest().world_size != ranks;
  if (others && (before == 0 || now == 0)) {
    throw CheckpointError(
        "checkpoint.resume",
        fmt::format("{} ranks saved it, and {} resume it: a loop whose batches are not those of "
                    "fleet::distributed_batch_sampler() resumes with as many ranks as before. "
                    "Start as many, or let fit() divide an epoch anew",
                    file.manifest().world_size,
                    ranks),
        {.path = path});
  }
  return file.snapshot(others ? 0 : rank, Reading::kWhenUsed);
}

TrainingProgress TrainingSaver::resume(const std::string& from) {
  saver_.wait();
  const std::string& folder = from.empty() ? saver_.directory() : from;
  const std::string path = newest_together(folder, "", group_).value_or("");
  if (path.empty()) {
    if (!from.empty()) {
      throw CheckpointError("checkpoint.resume", "there is no whole checkpoint", {.path = from});
    }
    return {};
  }
  Snapshot saved;
  together(group_, "checkpoint.resume", path, [&] {
    saved = read(path);
    for (const Module& each : modules_) {
      const engine::StateDict* weights = saved.find(each.name);
      if (weights == nullptr) {
        throw CheckpointError("checkpoint.resume",
                              fmt::format("the checkpoint has no \"{}\"", each.name),
                              {.path = path});
      }
      engine::load_state_dict(*each.module, *weights, {.source = path});
    }
  });
  // Collective, and the state of an optimizer lies as its weights do: between the two.
  for (const Module& each : modules_) {
    const auto format = saved.values.find(format_of(each.name));
    if (each.decide_format && format != saved.values.end()) {
      const auto chosen = engine::memory_format(format->get<std::string>());
      if (chosen.has_value() && *chosen != engine::MemoryFormat::kAuto) {
        each.decide_format(*chosen);
      }
    }
  }
  together(group_, "checkpoint.resume", path, [&] {
    for (const Piece& piece : pieces_) {
      piece.load(saved);
    }
    for (const Module& each : modules_) {
      load_rank_state(saved, each.name, *each.module);
    }
  });
  if (!group_.valid() || group_.rank() == 0) {
    log::info("resumed from {}: step {}, epoch {}", path, saved.step, saved.epoch);
  }
  begun_ = saved.step;
  TrainingProgress progress = progress_in(saved);
  saved = {};
  engine::release_free_memory();  // what reading has left
  return progress;
}

}  // namespace argosy::checkpoint
