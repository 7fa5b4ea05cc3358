#include "argosy/engine/state_dict.h"

#include <fmt/ranges.h>

#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"

namespace argosy::engine {
namespace {

void collect(const torch::nn::Module& module, const std::string& prefix, StateDict& dict) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    dict.set(prefix + item.key(), item.value().detach());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    dict.set(prefix + item.key(), item.value().detach());
  }
  for (const auto& child : module.named_children()) {
    collect(*child.value(), prefix + child.key() + ".", dict);
  }
}

std::string describe(const at::Tensor& tensor) {
  return fmt::format(
      "[{}] {}", fmt::join(tensor.sizes(), ", "), c10::toString(tensor.scalar_type()));
}

bool dtype_fits(const at::Tensor& own, const at::Tensor& given, bool convert) {
  return own.scalar_type() == given.scalar_type() ||
         (convert && own.is_floating_point() && given.is_floating_point());
}

// One line per group of names; a hundred names would bury the first.
void list_names(std::string& text, std::string_view title, const std::vector<std::string>& names) {
  if (names.empty()) {
    return;
  }
  constexpr std::size_t kShown = 12;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown));
  text += fmt::format("\n  {} ({}): {}", title, names.size(), fmt::join(names.begin(), end, ", "));
  if (names.size() > kShown) {
    text += fmt::format(", and {} more", names.size() - kShown);
  }
}

}  // namespace

StateDict::StateDict(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) {
    set(entry.first, entry.second);
  }
}

void StateDict::set(std::string name, at::Tensor tensor) {
  const auto [place, added] = index_.try_emplace(name, entries_.size());
  if (added) {
    entries_.emplace_back(std::move(name), std::move(tensor));
  } else {
    entries_[place->second].second = std::move(tensor);
  }
}

const at::Tensor* StateDict::find(std::string_view name) const {
  const auto place = index_.find(std::string(name));
  return place == index_.end() ? nullptr : &entries_[place->second].second;
}

const at::Tensor& StateDict::at(std::string_view name) const {
  const at::Tensor* tensor = find(name);
  ARGOSY_CHECK(tensor != nullptr,
               "engine.StateDict",
               "no entry \"{}\" (of {} entries{})",
               name,
               size(),
               empty() ? "" : fmt::format(", the first is \"{}\"", entries_.front().first));
  return *tensor;
}

StateDict StateDict::clone() const {
  StateDict copy;
  for (const auto& [name, tensor] : entries_) {
    copy.set(name, tensor.clone());
  }
  return copy;
}

StateDict state_dict(const torch::nn::Module& module) {
  StateDict dict;
  collect(module, "", dict);
  return dict;
}

LoadResult load_state_dict(const torch::nn::Module& module,
                           const StateDict& dict,
                           const LoadOptions& options) {
  const StateDict own = state_dict(module);
  LoadResult result;
  std::vector<std::string> mismatched;
  for (const auto& [name, tensor] : own) {
    const at::Tensor* given = dict.find(name);
    if (given == nullptr) {
      result.missing.push_back(name);
    } else if (!given->defined()) {
      mismatched.push_back(fmt::format("{}: expected {}, got nothing", name, describe(tensor)));
    } else if (given->sizes() != tensor.sizes() ||
               !dtype_fits(tensor, *given, options.convert_dtype)) {
      mismatched.push_back(
          fmt::format("{}: expected {}, got {}", name, describe(tensor), describe(*given)));
    }
  }
  for (const auto& [name, tensor] : dict) {
    if (!own.contains(name)) {
      result.unexpected.push_back(name);
    }
  }
  const bool names_differ = !result.missing.empty() || !result.unexpected.empty();
  if (!mismatched.empty() || (options.strict && names_differ)) {
    std::string text = "the entries do not fit the module:";
    list_names(text, "missing", result.missing);
    list_names(text, "unexpected", result.unexpected);
    list_names(text, "mismatched", mismatched);
    text += "\n  Build the module with the options it was saved with";
    text += mismatched.empty() ? ", or set .strict = false to load what fits." : ".";
    throw CheckpointError("engine.load_state_dict", text, {options.source, {}});
  }
  const c10::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    if (const at::Tensor* given = dict.find(name)) {
      at::Tensor target = tensor;  // shares memory with the module's own
      target.copy_(*given);
    }
  }
  return result;
}

}  // namespace argosy::engine
