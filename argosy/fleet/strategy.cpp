#include "argosy/fleet/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "argosy/base/catalogue.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"

#include <nlohmann/json.hpp>

namespace argosy::fleet {
namespace {

struct Toggle {
  const char* name;
  bool DistributedStrategy::*field;
  bool supported;
  const char* instead = "nothing does it yet";  ///< where it is not supported
};

struct Size {
  const char* name;
  double DistributedStrategy::*field;
};

using S = DistributedStrategy;
constexpr Toggle kToggles[] = {
    {"find_unused_parameters", &S::find_unused_parameters, true},
    {"fp16_allreduce", &S::fp16_allreduce, true},
    {"bf16_allreduce", &S::bf16_allreduce, true},
    {"divide_update", &S::divide_update, true},
    {"share_parameters", &S::share_parameters, true},
    {"overlap_update", &S::overlap_update, true},
    {"sync_batch_norm", &S::sync_batch_norm, true},
    {"amp",
     &S::amp,
     false,
     "prepare(…, {.amp = …}) does it, or engine::Autocast in a loop of your own"},
    {"recompute", &S::recompute, false},
    {"gradient_merge", &S::gradient_merge, true},
    {"localsgd", &S::localsgd, false},
    {"adaptive_localsgd", &S::adaptive_localsgd, false},
    {"dgc", &S::dgc, false, "fp16_allreduce and bf16_allreduce halve the traffic"},
    {"lars", &S::lars, true},
    {"lamb", &S::lamb, true},
    {"sharding", &S::sharding, false, "divide_update divides the step and its state inside a host"},
    {"pipeline", &S::pipeline, false},
    {"tensor_parallel", &S::tensor_parallel, false},
    {"use_hierarchical_allreduce",
     &S::use_hierarchical_allreduce,
     false,
     "ranks of several hosts always reduce inside each host first"},
    {"elastic", &S::elastic, false, "argosy launch --max_restarts and checkpoints come nearest"},
    {"auto_search", &S::auto_search, false},
    {"asp", &S::asp, false},
    {"qat", &S::qat, false},
    {"heter_ccl_mode", &S::heter_ccl_mode, false},
};
constexpr Size kSizes[] = {
    {"fuse_grad_size_in_MB", &S::fuse_grad_size_in_MB},
    {"last_comm_group_size_MB", &S::last_comm_group_size_MB},
};
constexpr const char* kHybrid = "hybrid_configs";
constexpr const char* kFormat = "memory_format";
/// Paddle's axes.
constexpr std::array kAxes = {
    "dp_degree", "mp_degree", "pp_degree", "sharding_degree", "sep_degree"};

[[noreturn]] void refuse(const std::string& text) {
  throw ConfigError("fleet.DistributedStrategy", text);
}

std::string unknown(const char* kind,
                    const std::string& key,
                    const std::vector<std::string>& known) {
  const std::optional<std::string> near = strings::closest(key, known);
  return fmt::format("there is no {} \"{}\"{}",
                     kind,
                     key,
                     near ? fmt::format(". Did you mean \"{}\"?", *near)
                          : fmt::format("; known are: {}", fmt::join(known, ", ")));
}

engine::MemoryFormat format_of(const nlohmann::json& value) {
  const std::optional<engine::MemoryFormat> format =
      value.is_string() ? engine::memory_format(value.get<std::string>()) : std::nullopt;
  if (!format) {
    refuse(
        fmt::format("{}: expected \"auto\", \"as_is\", \"contiguous\" or \"channels_last\", got {}",
                    kFormat,
                    value.dump()));
  }
  return *format;
}

/// Calls `visit` with the name and the value of each field.
template <typename Visit>
void for_each_field(LarsConfigs& configs, const Visit& visit) {
  visit("lars_coeff", configs.lars_coeff);
  visit("lars_weight_decay", configs.lars_weight_decay);
  visit("epsilon", configs.epsilon);
  visit("exclude_from_weight_decay", configs.exclude_from_weight_decay);
}
template <typename Visit>
void for_each_field(LambConfigs& configs, const Visit& visit) {
  visit("lamb_weight_decay", configs.lamb_weight_decay);
  visit("exclude_from_weight_decay", configs.exclude_from_weight_decay);
}
template <typename Visit>
void for_each_field(GradientMergeConfigs& configs, const Visit& visit) {
  visit("k_steps", configs.k_steps);
  visit("avg", configs.avg);
}
template <typename Visit>
void for_each_configs(S& strategy, const Visit& visit) {
  visit("lars_configs", strategy.lars_configs);
  visit("lamb_configs", strategy.lamb_configs);
  visit("gradient_merge_configs", strategy.gradient_merge_configs);
}

void read(const std::string& where, const nlohmann::json& value, double& field) {
  if (!value.is_number()) {
    refuse(fmt::format("{}: expected a number, got {}", where, value.dump()));
  }
  field = value.get<double>();
}
void read(const std::string& where, const nlohmann::json& value, int64_t& field) {
  if (!value.is_number_integer()) {
    refuse(fmt::format("{}: expected a whole number, got {}", where, value.dump()));
  }
  field = value.get<int64_t>();
}
void read(const std::string& where, const nlohmann::json& value, bool& field) {
  if (!value.is_boolean()) {
    refuse(fmt::format("{}: expected true or false, got {}", where, value.dump()));
  }
  field = value.get<bool>();
}
void read(const std::string& where, const nlohmann::json& value, std::vector<std::string>& field) {
  const auto is_text = [](const nlohmann::json& each) { return each.is_string(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text)) {
    refuse(fmt::format("{}: expected a list of texts, got {}", where, value.dump()));
  }
  field = value.get<std::vector<std::string>>();
}

/// Reads the object of one toggle's settings.
template <typename Configs>
void read_configs(const std::string& key, const nlohmann::json& value, Configs& configs) {
  if (!value.is_object()) {
    refuse(fmt::format("{}: expected an object, got {}", key, value.dump()));
  }
  std::vector<std::string> known;
  for_each_field(configs, [&](const char* name, auto& field) {
    known.emplace_back(name);
    if (value.contains(name)) {
      read(fmt::format("{}.{}", key, name), value.at(name), field);
    }
  });
  for (const auto& [name, unused] : value.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      refuse(unknown(fmt::format("field of {}", key).c_str(), name, known));
    }
  }
}

std::string unknown_key(const std::string& key) {
  std::vector<std::string> known{kHybrid, kFormat};
  for (const Toggle& toggle : kToggles) {
    known.emplace_back(toggle.name);
  }
  for (const Size& size : kSizes) {
    known.emplace_back(size.name);
  }
  S any;
  for_each_configs(any, [&](const char* name, auto& /*configs*/) { known.emplace_back(name); });
  return unknown("toggle", key, known);
}

/// Sets the field that `key` names; false when there is none.
bool assign(S& strategy, const std::string& key, const nlohmann::json& value) {
  for (const Toggle& toggle : kToggles) {
    if (key == toggle.name) {
      if (!value.is_boolean()) {
        refuse(fmt::format("{}: expected true or false, got {}", key, value.dump()));
      }
      strategy.*toggle.field = value.get<bool>();
      return true;
    }
  }
  for (const Size& size : kSizes) {
    if (key == size.name) {
      if (!value.is_number()) {
        refuse(fmt::format("{}: expected a number of megabytes, got {}", key, value.dump()));
      }
      strategy.*size.field = value.get<double>();
      return true;
    }
  }
  bool found = false;
  for_each_configs(strategy, [&](const char* name, auto& configs) {
    if (key == name) {
      read_configs(key, value, configs);
      found = true;
    }
  });
  if (found) {
    return true;
  }
  if (key == kFormat) {
    strategy.memory_format = format_of(value);
    return true;
  }
  if (key == kHybrid) {
    if (!value.is_object()) {
      refuse(fmt::format(
          "{}: expected an object such as {{\"dp_degree\": 2}}, got {}", key, value.dump()));
    }
    for (const auto& [axis, degree] : value.items()) {
      if (!degree.is_number_integer()) {
        refuse(fmt::format("{}.{}: expected a whole number, got {}", key, axis, degree.dump()));
      }
      strategy.hybrid_configs[axis] = degree.get<int64_t>();
    }
    return true;
  }
  return false;
}

}  // namespace

void DistributedStrategy::validate() const {
  for (const Toggle& toggle : kToggles) {
    if (!toggle.supported && this->*toggle.field) {
      refuse(
          fmt::format("{} is not supported. Leave it false: {}. See {}docs/reference/"
                      "coming_from_paddle.md#distributedstrategy",
                      toggle.name,
                      toggle.instead,
                      docs_folder().empty() ? "" : docs_folder() + "/"));
    }
  }
  for (const Size& size : kSizes) {
    const double megabytes = this->*size.field;
    if (!std::isfinite(megabytes) || megabytes <= 0 || megabytes > 1e6) {
      refuse(fmt::format("{}: expected megabytes above 0, got {}", size.name, megabytes));
    }
  }
  if (fp16_allreduce && bf16_allreduce) {
    refuse("fp16_allreduce and bf16_allreduce exclude each other. Choose one.");
  }
  if ((share_parameters || overlap_update) && !divide_update) {
    refuse("share_parameters and overlap_update are ways of divide_update, which is off.");
  }
  if (overlap_update && (find_unused_parameters || fp16_allreduce || bf16_allreduce)) {
    refuse(
        "overlap_update excludes find_unused_parameters, fp16_allreduce and bf16_allreduce: "
        "gradients "
        "are final only at the end of backward.");
  }
  if (overlap_update && gradient_merge) {
    refuse(
        "overlap_update and gradient_merge exclude each other: an update would be made before its "
        "gradients are merged.");
  }
  if (lars && lamb) {
    refuse("lars and lamb exclude each other. Choose one.");
  }
  if (gradient_merge_configs.k_steps < 1) {
    refuse(fmt::format("gradient_merge_configs.k_steps: expected at least 1, got {}",
                       gradient_merge_configs.k_steps));
  }
  for (const auto& [axis, degree] : hybrid_configs) {
    if (std::find(kAxes.begin(), kAxes.end(), axis) == kAxes.end()) {
      refuse(unknown("axis of hybrid_configs", axis, {kAxes.begin(), kAxes.end()}));
    }
    const bool neutral = axis == "dp_degree" ? degree == -1 || degree >= 1 : degree == 1;
    if (!neutral) {
      refuse(
          fmt::format("hybrid_configs.{} = {}: only data parallelism (dp_degree) is supported yet",
                      axis,
                      degree));
    }
  }
}

DistributedStrategy DistributedStrategy::from_json(const std::string& text) {
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) {
    refuse("expected a JSON object such as {\"find_unused_parameters\": true}, got: " + text);
  }
  DistributedStrategy strategy;
  for (const auto& [key, value] : parsed.items()) {
    if (!assign(strategy, key, value)) {
      refuse(unknown_key(key));
    }
  }
  strategy.validate();
  return strategy;
}

std::string DistributedStrategy::to_json() const {
  nlohmann::ordered_json json;
  for (const Toggle& toggle : kToggles) {
    json[toggle.name] = this->*toggle.field;
  }
  for (const Size& size : kSizes) {
    json[size.name] = this->*size.field;
  }
  S copy = *this;
  for_each_configs(copy, [&](const char* name, auto& configs) {
    for_each_field(configs, [&](const char* field, auto& value) { json[name][field] = value; });
  });
  json[kFormat] = engine::to_string(memory_format);
  json[kHybrid] = hybrid_configs;
  return json.dump();
}

}  // namespace argosy::fleet
