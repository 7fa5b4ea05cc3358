#include "argosy/optim/load_state.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/optim/flat_view.h"

namespace argosy::optim {
namespace {

// Faults of one kind, the first dozen by name.
void report(std::string& text, std::string_view title, const std::vector<std::string>& faults) {
  if (faults.empty()) {
    return;
  }
  constexpr std::size_t kShown = 12;
  const std::size_t shown = std::min(kShown, faults.size());
  text += fmt::format("\n  {} ({}): {}",
                      title,
                      faults.size(),
                      fmt::join(faults.data(), faults.data() + shown, ", "));
  if (shown < faults.size()) {
    text += fmt::format(", and {} more", faults.size() - shown);
  }
}

void compare_entry(const std::string& name,
                   const at::Tensor& parameter,
                   const engine::StateDict& entry,
                   const Rule& rule,
                   bool has_master,
                   std::vector<std::string>& mismatched) {
  const at::Tensor* step = entry.find("step");
  if (step == nullptr || !step->defined() || step->numel() != 1) {
    mismatched.push_back(fmt::format("{}: expected a scalar \"step\"", name));
  }
  std::vector<std::string> expected = rule.state_names();
  if (has_master) {
    if (step != nullptr && step->numel() == 1 && step->item<double>() == 0) {
      expected.clear();  // it was never updated
    }
    if (entry.find(kMaster) != nullptr) {  // absent where the parameters were f32
      expected.emplace_back(kMaster);
    }
  }
  for (const std::string& state : expected) {
    const at::Tensor* tensor = entry.find(state);
    if (tensor == nullptr || !tensor->defined() || tensor->sizes() != parameter.sizes() ||
        tensor->scalar_type() != state_type(parameter)) {
      mismatched.push_back(
          fmt::format("{}.{}: expected {} {}, got {}",
                      name,
                      state,
                      text::shape(parameter.sizes()),
                      c10::toString(state_type(parameter)),
                      tensor == nullptr ? "nothing" : text::shape_and_type(*tensor)));
    }
  }
  for (const auto& [state, tensor] : entry) {
    if (tensor.defined() && state != "step" &&
        std::find(expected.begin(), expected.end(), state) == expected.end()) {
      mismatched.push_back(fmt::format(
          "{}.{}: expected no such state, got {}", name, state, text::shape_and_type(tensor)));
    }
  }
}

std::set<std::string> name_set(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

void check_loadable(const OptimizerState& state,
                    const Rule& rule,
                    const engine::NamedTensors& parameters,
                    const std::vector<GroupInfo>& groups,
                    const std::function<bool(const at::Tensor& parameter)>& has_master) {
  std::string text;
  if (state.optimizer != rule.name()) {
    text += fmt::format("\n  optimizer: expected {}, got \"{}\"", rule.name(), state.optimizer);
  }
  std::unordered_map<std::string, const at::Tensor*> own;
  for (const auto& [name, parameter] : parameters) {
    own.emplace(name, &parameter);
  }
  std::set<std::string> saved;
  for (const GroupInfo& group : state.groups) {
    saved.insert(group.names.begin(), group.names.end());
  }
  std::vector<std::string> missing, unexpected, mismatched, regrouped;
  for (const auto& [name, entry] : state.parameters) {
    if (const auto place = own.find(name); place != own.end()) {
      compare_entry(name, *place->second, entry, rule, has_master(*place->second), mismatched);
    } else {
      saved.insert(name);
    }
  }
  for (const auto& [name, parameter] : parameters) {
    if (!state.groups.empty() && !saved.contains(name)) {
      missing.push_back(name);
    }
  }
  for (const std::string& name : saved) {
    if (!own.contains(name)) {
      unexpected.push_back(name);
    }
  }
  if (!state.groups.empty() && missing.empty() && unexpected.empty()) {
    if (state.groups.size() != groups.size()) {
      regrouped.push_back(
          fmt::format("expected {} groups, got {}", groups.size(), state.groups.size()));
    }
    for (std::size_t i = 0; i < std::min(groups.size(), state.groups.size()); ++i) {
      if (name_set(groups[i].names) != name_set(state.groups[i].names)) {
        regrouped.push_back(fmt::format("group {} has other parameters", i));
      }
    }
  }
  report(text, "missing", missing);
  report(text, "unexpected", unexpected);
  report(text, "mismatched", mismatched);
  report(text, "groups", regrouped);
  if (!text.empty()) {
    throw CheckpointError(
        "optim.load_state_dict",
        "the state does not fit the optimizer:" + text +
            "\n  Build model and optimizer with the options they were saved with.");
  }
}

}  // namespace argosy::optim
