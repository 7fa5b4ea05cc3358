#include "argosy/train/callbacks/keep_in_checkpoint.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include <torch/nn/module.h>

#include "argosy/checkpoint/snapshot.h"
#include "argosy/checkpoint/states.h"

#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

constexpr std::string_view kModel = "model/";
constexpr std::string_view kOptimizer = "optimizer/";

engine::StateDict without_prefix(const engine::StateDict& tensors, std::string_view prefix) {
  engine::StateDict part;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) {
      part.set(name.substr(prefix.size()), tensor);
    }
  }
  return part;
}

}  // namespace

KeepInCheckpoint::KeepInCheckpoint(std::string name,
                                   std::shared_ptr<torch::nn::Module> module,
                                   optim::Optimizer optimizer)
    : name_(std::move(name)), module_(std::move(module)), optimizer_(std::move(optimizer)) {}

nlohmann::ordered_json KeepInCheckpoint::state() const {
  checkpoint::Snapshot now;
  checkpoint::put_state(now, "optimizer", optimizer_.state_dict());
  return now.values;
}

void KeepInCheckpoint::load_state(const nlohmann::ordered_json& state) {
  loaded_ = std::make_shared<nlohmann::ordered_json>(state);
}

engine::StateDict KeepInCheckpoint::tensors() const {
  engine::StateDict all;
  for (const auto& [name, tensor] : engine::state_dict(*module_)) {
    all.set(std::string(kModel) + name, tensor);
  }
  checkpoint::Snapshot now;
  checkpoint::put_state(now, "optimizer", optimizer_.state_dict());
  for (const auto& [part, tensors] : now.parts) {
    for (const auto& [name, tensor] : tensors) {
      all.set(std::string(kOptimizer) + name, tensor);
    }
  }
  return all;
}

void KeepInCheckpoint::load_tensors(const engine::StateDict& tensors) {
  if (!loaded_) {
    throw CheckpointError("train.resume",
                          fmt::format("the checkpoint has tensors of {}, and no state", name_));
  }
  engine::load_state_dict(*module_, without_prefix(tensors, kModel), {.source = name_});
  checkpoint::Snapshot saved;
  saved.values = *loaded_;
  saved.parts.emplace_back("optimizer", without_prefix(tensors, kOptimizer));
  optimizer_.load_state_dict(checkpoint::get_state<optim::OptimizerState>(saved, "optimizer"));
  loaded_.reset();
}

}  // namespace argosy::train
