#include "argosy/fleet/group_sharded.h"

#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include <ATen/ops/scalar_tensor.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/together.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/parts.h"

namespace argosy::fleet::detail {

void make_folder(const std::string& path) {
  std::string error;
  if (worker_index() == 0) {
    std::error_code code;
    std::filesystem::create_directories(path, code);
    error = code ? code.message() : "";
  }
  error = comm::broadcast_object(error, group());
  if (!error.empty()) {
    throw CheckpointError("fleet.save_group_sharded_model",
                          fmt::format("cannot make the folder {}: {}", path, error));
  }
}

namespace {

constexpr const char* kRate = "/lr";

optim::OptimizerState read_state(const optim::Optimizer& optimizer, const std::string& path) {
  optim::OptimizerState state{.optimizer = optimizer.impl()->name(),
                              .groups = optimizer.param_groups()};
  const engine::StateDict all = checkpoint::read_weights(path);
  for (optim::GroupInfo& group : state.groups) {
    const at::Tensor* rate = group.names.empty() ? nullptr : all.find(group.names.front() + kRate);
    group.lr = rate == nullptr ? group.lr : rate->item<double>();
  }
  std::map<std::string, engine::StateDict> by_parameter;
  for (const auto& [entry, tensor] : all) {
    const size_t slash = entry.rfind('/');
    if (slash != std::string::npos && entry.substr(slash) != kRate) {
      by_parameter[entry.substr(0, slash)].set(entry.substr(slash + 1), tensor);
    }
  }
  state.parameters.assign(by_parameter.begin(), by_parameter.end());
  return state;
}

}  // namespace

void load_together(const torch::nn::Module& module,
                   const std::string& weights,
                   optim::Optimizer* optimizer,
                   const std::string& state) {
  checkpoint::together(group(), "fleet.load_group_sharded_model", weights, [&] {
    checkpoint::load_weights(module, weights);
    if (optimizer != nullptr) {
      optimizer->load_state_dict(read_state(*optimizer, state));
    }
  });
}

void save_state(const optim::Optimizer& optimizer, const std::string& path) {
  engine::StateDict all;
  for (const auto& [name, states] : optimizer.state_dict().parameters) {
    for (const auto& [state, tensor] : states) {
      all.set(name + "/" + state, engine::values_of(tensor));  // gathered on all ranks alike
    }
  }
  for (const optim::GroupInfo& group : optimizer.param_groups()) {
    for (const std::string& name : group.names) {
      all.set(name + kRate, at::scalar_tensor(group.lr, at::kDouble));
    }
  }
  std::string error;
  if (worker_index() == 0) {
    try {
      checkpoint::save_weights(all, path);
    } catch (const std::exception& failure) {
      error = failure.what();
    }
  }
  error = comm::broadcast_object(error, group());
  if (!error.empty()) {
    throw CheckpointError("fleet.save_group_sharded_model", error);
  }
}

}  // namespace argosy::fleet::detail
