#include "argosy/parallel/sharded/unit_plan.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include "argosy/base/check.h"

namespace argosy::parallel::sharded {
namespace {

using Module = torch::nn::Module;

bool is_list(const Module& module) {
  return dynamic_cast<const torch::nn::ModuleListImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::SequentialImpl*>(&module) != nullptr;
}

bool has_list(const Module& module) {
  return std::ranges::any_of(module.modules(), [](const auto& each) { return is_list(*each); });
}

/// Names of modules with a point behind them: the children of the outermost lists, and what has no
/// list in it.
void add_units(const Module& module, const std::string& prefix, std::vector<std::string>& units) {
  for (const auto& child : module.named_children()) {
    const std::string name = prefix + child.key() + ".";
    if (!is_list(module) && has_list(*child.value())) {
      add_units(*child.value(), name, units);
    } else {
      units.push_back(name);
    }
  }
}

std::vector<std::string> named_units(const Module& module, const std::vector<std::string>& names) {
  std::vector<std::string> units;
  for (const std::string& name : names) {
    const size_t before = units.size();
    for (const auto& each : module.named_modules("", /*include_self=*/false)) {
      if (::fnmatch(name.c_str(), each.key().c_str(), 0) == 0) {
        units.push_back(each.key() + ".");
      }
    }
    ARGOSY_CHECK(units.size() > before,
                 "parallel.fully_shard",
                 "units: the model has no module \"{}\". Give names as named_modules() has them",
                 name);
  }
  return units;
}

/// The innermost unit of a parameter; empty: the rest.
std::string_view unit_of(const std::string& parameter, const std::vector<std::string>& units) {
  std::string_view found;
  for (const std::string& unit : units) {
    if (parameter.starts_with(unit) && unit.size() > found.size()) {
      found = unit;
    }
  }
  return found;
}

/// Parameters of one unit, of one type.
struct Unit {
  std::vector<size_t> parameters{};
  int64_t bytes = 0;
};

}  // namespace

ddp::BucketPlan plan_units(const Module& module,
                           const ddp::ParameterTable& table,
                           const ShardOptions& options) {
  std::vector<std::string> names = named_units(module, options.units);
  if (names.empty()) {
    add_units(module, "", names);
  }
  std::vector<Unit> units;  // in the order of their first parameters
  std::map<std::pair<std::string_view, at::ScalarType>, size_t> places;
  for (size_t i = 0; i < table.size(); ++i) {
    const at::Tensor& tensor = table.tensors()[i];
    const auto [place, is_new] =
        places.try_emplace({unit_of(table.name(i), names), tensor.scalar_type()}, units.size());
    if (is_new) {
      units.emplace_back();
    }
    Unit& unit = units[place->second];
    unit.parameters.push_back(i);
    unit.bytes += static_cast<int64_t>(tensor.nbytes());
  }
  ddp::BucketPlan plan;
  int64_t bytes = 0;  // of the last of the plan
  for (const Unit& unit : units) {
    const auto type = [&](size_t index) { return table.tensors()[index].scalar_type(); };
    const bool joins = !plan.empty() && bytes < options.unit_bytes &&
                       type(plan.back().front()) == type(unit.parameters.front());
    if (!joins) {
      plan.emplace_back();
      bytes = 0;
    }
    plan.back().insert(plan.back().end(), unit.parameters.begin(), unit.parameters.end());
    bytes += unit.bytes;
  }
  std::ranges::reverse(plan);
  for (std::vector<size_t>& unit : plan) {
    std::ranges::reverse(unit);
  }
  return plan;
}

}  // namespace argosy::parallel::sharded
