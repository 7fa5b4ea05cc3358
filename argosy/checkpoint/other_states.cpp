#include "argosy/checkpoint/other_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/checkpoint/data_error.h"
#include "argosy/checkpoint/paddle_file.h"
#include "argosy/checkpoint/paddle_names.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/renamer.h"
#include "argosy/checkpoint/torch_file.h"

namespace argosy::checkpoint {
namespace {

using formats::PickleEntry;
using formats::PickleKind;
using formats::PickleValue;

constexpr const char* kOtherState = "checkpoint.read_state";

[[noreturn]] void fail_state(const std::string& path, const std::string& what) {
  throw CheckpointError(kOtherState, what, {path});
}

/// What `read` makes of a file; what is wrong with its form is an error of the checkpoint.
template <typename Read>
auto reading_state(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw_as_checkpoint(kOtherState, path, error);
  }
}

/// The dict under `key`, or the file's own where it has `sign`.
const PickleValue& part_of(const PickleValue& whole,
                           const std::string& path,
                           const std::vector<std::string>& keys,
                           std::string_view sign) {
  for (const std::string& key : keys) {
    if (const PickleValue* found = whole.find(key)) {
      return *found;
    }
  }
  if (whole.find(sign) == nullptr) {
    fail_state(path, fmt::format("there is no \"{}\" in it. Say where it is: .key", keys.front()));
  }
  return whole;
}

std::vector<std::string> keys_or(const std::string& given, std::vector<std::string> usual) {
  return given.empty() ? std::move(usual) : std::vector<std::string>{given};
}

at::Tensor step_count(double steps) {
  return at::scalar_tensor(steps, at::kDouble);
}

/// Numbers of one state of one parameter, as the parameter has them.
at::Tensor fitted(const at::Tensor& state, const at::Tensor& parameter) {
  return state.to(parameter.scalar_type());
}

double number_of(const PickleValue& value, const TorchObjects& file, const std::string& name) {
  const at::Tensor tensor = file.tensor(value, name);
  return tensor.defined() ? tensor.item<double>() : value.as_float(name);
}

optim::OptimizerState from_torch(const std::string& path,
                                 const optim::Optimizer& optimizer,
                                 const OtherStateOptions& options) {
  const TorchObjects file = read_torch_objects(path);
  const PickleValue& saved =
      part_of(file.value, path, keys_or(options.key, {"optimizer"}), "param_groups");
  optim::OptimizerState result = optimizer.state_dict();
  result.parameters.clear();
  const auto groups = saved.at("param_groups").items("param_groups");
  if (groups.size() != result.groups.size()) {
    fail_state(path,
               fmt::format("the optimizer there has {} groups of parameters, this one has {}",
                           groups.size(),
                           result.groups.size()));
  }
  std::vector<std::pair<int64_t, std::string>> names;  // PyTorch's number, our name
  for (size_t g = 0; g < groups.size(); ++g) {
    result.groups[g].lr = number_of(groups[g].at("lr"), file, "lr");
    const auto numbers = groups[g].at("params").items("params");
    if (numbers.size() != result.groups[g].names.size()) {
      fail_state(path,
                 fmt::format("group {} there has {} parameters, here it has {}",
                             g,
                             numbers.size(),
                             result.groups[g].names.size()));
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      names.emplace_back(numbers[i].as_int("params"), result.groups[g].names[i]);
    }
  }
  const auto states = saved.at("state").entries("state");
  for (const auto& [number, name] : names) {
    const at::Tensor* parameter = nullptr;
    for (const auto& [own, tensor] : optimizer.parameters()) {
      parameter = own == name ? &tensor : parameter;
    }
    for (const PickleEntry& state : states) {
      if (parameter == nullptr || state.key.as_int("state") != number) {
        continue;
      }
      engine::StateDict entry;
      entry.set("step", step_count(1));  // SGD has none: any but the first is like the others
      for (const PickleEntry& part : state.value.entries(name)) {
        const std::string what(part.key.as_text(name));
        const at::Tensor tensor = file.tensor(part.value, name + "." + what);
        if (what == "step") {
          entry.set(what, step_count(number_of(part.value, file, what)));
        } else if (tensor.defined()) {
          entry.set(what, fitted(tensor, *parameter));
        }
      }
      result.parameters.emplace_back(name, std::move(entry));
    }
  }
  return result;
}

/// Paddle's words for the states, and ours.
constexpr std::pair<std::string_view, std::string_view> kPaddleStates[] = {
    {"_moment1_0", "exp_avg"},
    {"_moment2_0", "exp_avg_sq"},
    {"_moment2_max_0", "max_exp_avg_sq"},
    {"_velocity_0", "momentum_buffer"},
    {"_mean_square_0", "square_avg"},
    {"_moment_0", "sum"},
};

/// Steps made, by a power of a beta: beta^(steps + 1) in f32. nullopt: too small to say.
std::optional<double> steps_by(const PickleValue* power, double beta, const std::string& path) {
  constexpr double kLeast = 1e-30;
  if (power == nullptr) {
    return std::nullopt;
  }
  const double value = to_tensor(power->as_array("a power"), path, "a power").item<double>();
  return value < kLeast ? std::nullopt
                        : std::optional(std::round(std::log(value) / std::log(beta)) - 1);
}

/// Paddle's name of each parameter, by the model's.
std::map<std::string, std::string> names_in(const PickleValue& table,
                                            const std::vector<Rename>& renames) {
  const Renamer renamed(renames);
  std::map<std::string, std::string> names;
  for (const PickleEntry& entry : table.entries("StructuredToParameterName@@")) {
    names.emplace(renamed(std::string(entry.key.as_text("a name"))), entry.value.as_text("a name"));
  }
  return names;
}

/// Where a ReduceLROnPlateau stands; other schedules have none of it. Paddle and PyTorch use the
/// same words, but for the rates.
template <typename Number>
void take_plateau(const PickleValue& saved, const Number& number, optim::LRSchedulerState& state) {
  const PickleValue* const bad = saved.find("num_bad_epochs");
  if (bad == nullptr) {
    return;
  }
  state.num_bad_epochs = bad->as_int("num_bad_epochs");
  state.cooldown_counter = saved.at("cooldown_counter").as_int("cooldown_counter");
  const PickleValue& best = saved.at("best");
  const std::optional<double> value =
      best.is(PickleKind::kNone) ? std::nullopt : std::optional(number(best));
  state.best = value.has_value() && std::isfinite(*value) ? value : std::nullopt;
}

optim::OptimizerState from_paddle_file(const std::string& path,
                                       const optim::Optimizer& optimizer,
                                       const OtherStateOptions& options) {
  ARGOSY_CHECK(!options.weights.empty() && options.module != nullptr,
               kOtherState,
               "{}: a .pdopt names parameters as Paddle does: set .weights to the .pdparams that "
               "was saved with it, and .module to the model",
               path);
  const PickleValue saved = read_paddle_objects(path);
  const PickleValue weights = read_paddle_objects(options.weights);
  const PickleValue* table = weights.find("StructuredToParameterName@@");
  if (table == nullptr) {
    fail_state(options.weights, "it has no table of Paddle's names. Save layer.state_dict()");
  }
  const std::set<std::string> linear = linear_weights(*options.module);
  optim::OptimizerState result = optimizer.state_dict();
  result.parameters.clear();
  if (const PickleValue* schedule = saved.find("LR_Scheduler")) {
    for (optim::GroupInfo& group : result.groups) {
      group.lr = schedule->at("last_lr").as_float("last_lr") * group.lr_scale;
    }
  }
  const std::map<std::string, std::string> paddle_names = names_in(*table, options.renames);
  for (const auto& [name, parameter] : optimizer.parameters()) {
    const auto theirs = paddle_names.find(name);
    if (theirs == paddle_names.end()) {
      fail_state(options.weights,
                 fmt::format("it names no parameter \"{}\", but {} others, such as \"{}\". "
                             ".renames turns its names into the model's",
                             name,
                             paddle_names.size(),
                             paddle_names.empty() ? "" : paddle_names.begin()->first));
    }
    const std::string& paddle = theirs->second;
    engine::StateDict entry;
    const auto by_beta1 = steps_by(saved.find(paddle + "_beta1_pow_acc_0"), options.beta1, path);
    const auto by_beta2 = steps_by(saved.find(paddle + "_beta2_pow_acc_0"), options.beta2, path);
    // Where both have vanished, so has what the number of steps is needed for.
    constexpr double kMany = 1e6;
    const bool adam = saved.find(paddle + "_beta1_pow_acc_0") != nullptr;
    entry.set("step", step_count(by_beta1.value_or(by_beta2.value_or(adam ? kMany : 1))));
    for (const auto& [word, ours] : kPaddleStates) {
      if (const PickleValue* state = saved.find(paddle + std::string(word))) {
        at::Tensor tensor = to_tensor(state->as_array(name), path, name);
        tensor = linear.contains(name) ? tensor.t().contiguous() : tensor;
        entry.set(std::string(ours), fitted(tensor, parameter));
      }
    }
    if (entry.size() > 1) {
      result.parameters.emplace_back(name, std::move(entry));
    }
  }
  return result;
}

}  // namespace

optim::OptimizerState read_optimizer_state(const std::string& path,
                                           const optim::Optimizer& optimizer,
                                           const OtherStateOptions& options) {
  return reading_state(path, [&] {
    return weights_kind(path) == WeightsKind::kPaddle ? from_paddle_file(path, optimizer, options)
                                                      : from_torch(path, optimizer, options);
  });
}

optim::LRSchedulerState read_schedule_state(const std::string& path,
                                            const optim::LRSchedulerState& like,
                                            const OtherStateOptions& options) {
  return reading_state(path, [&] {
    optim::LRSchedulerState result = like;
    if (weights_kind(path) == WeightsKind::kPaddle) {
      const PickleValue whole = read_paddle_objects(path);
      const PickleValue& saved = part_of(whole, path, {"LR_Scheduler"}, "last_epoch");
      result.step = saved.at("last_epoch").as_int("last_epoch");
      if (saved.find("num_bad_epochs") != nullptr) {
        result.last_lrs.assign(std::max<size_t>(1, like.base_lrs.size()),
                               saved.at("last_lr").as_float("last_lr"));
      }
      take_plateau(
          saved, [](const PickleValue& best) { return best.as_float("best"); }, result);
      return result;
    }
    const TorchObjects file = read_torch_objects(path);
    const PickleValue& saved = part_of(
        file.value, path, keys_or(options.key, {"lr_scheduler", "scheduler"}), "last_epoch");
    const auto numbers = [&](const char* name) {
      std::vector<double> all;
      if (const PickleValue* list = saved.find(name)) {
        for (const PickleValue& number : list->items(name)) {
          all.push_back(number_of(number, file, name));
        }
      }
      return all;
    };
    result.step = saved.at("last_epoch").as_int("last_epoch");
    if (const std::vector<double> base = numbers("base_lrs"); !base.empty()) {
      result.base_lrs = base;
    }
    if (saved.find("num_bad_epochs") != nullptr) {
      result.last_lrs = numbers("_last_lr");
    }
    take_plateau(
        saved, [&](const PickleValue& best) { return number_of(best, file, "best"); }, result);
    return result;
  });
}

int64_t read_epoch(const std::string& path, const std::string& key) {
  return reading_state(path, [&] { return read_torch_objects(path).value.at(key).as_int(key); });
}

}  // namespace argosy::checkpoint
