#include "argosy/engine/state_dict.h"

#include <fmt/ranges.h>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/engine/deferred.h"
#include "argosy/engine/parts.h"

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

// Why an entry cannot fill a tensor; empty when it can.
std::string misfit(const at::Tensor& own, const at::Tensor& given, const LoadOptions& options) {
  if (!given.defined() || given.sizes() != own.sizes()) {
    return "other shape";
  }
  const bool floats = own.is_floating_point() && given.is_floating_point();
  const bool type_fits =
      own.scalar_type() == given.scalar_type() || (options.convert_dtype && floats);
  return type_fits ? "" : "other type";
}

LoadResult compare(const StateDict& own, const StateDict& dict, const LoadOptions& options) {
  LoadResult result;
  for (const auto& [name, tensor] : own) {
    const at::Tensor* given = dict.find(name);
    if (given == nullptr) {
      result.missing.push_back(name);
    } else if (std::string why = misfit(tensor, *given, options); !why.empty()) {
      result.mismatched.push_back(
          {name, std::move(why), text::shape_and_type(tensor), text::shape_and_type(*given)});
    } else {
      result.loaded.push_back(name);
    }
  }
  for (const auto& [name, tensor] : dict) {
    if (!own.contains(name)) {
      result.unexpected.push_back(name);
    }
  }
  return result;
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

void list_differences(std::string& text, const LoadResult& result) {
  std::vector<std::string> mismatched;
  for (const auto& [name, why, expected, got] : result.mismatched) {
    mismatched.push_back(fmt::format("{}: expected {}, got {}", name, expected, got));
  }
  list_names(text, "missing", result.missing);
  list_names(text, "unexpected", result.unexpected);
  list_names(text, "mismatched", mismatched);
}

std::string advice(const LoadResult& result, const LoadOptions& options) {
  // What DistributedDataParallel puts before the names of the module that it wraps.
  if (!result.missing.empty() && !result.unexpected.empty() &&
      result.unexpected.front() == "module." + result.missing.front()) {
    return "The names begin with \"module.\", as DistributedDataParallel writes them: read the "
           "file with .strip_prefix = \"module.\", or write another one: argosy checkpoint convert "
           "FROM TO --strip_prefix module.";
  }
  if (!options.advice.empty()) {
    return options.advice;
  }
  const std::string_view other = options.partial ? ""
                                 : result.mismatched.empty()
                                     ? ", or set .strict = false to load what fits"
                                     : ", or set .partial = true to load what fits";
  return fmt::format("Build the module with the options it was saved with{}.", other);
}

// Throws unless there is enough that fits.
void judge(const LoadResult& result, const LoadOptions& options) {
  const bool names_differ = !result.missing.empty() || !result.unexpected.empty();
  std::string text;
  if (options.partial) {
    const bool nothing = result.loaded.empty() && (names_differ || !result.mismatched.empty());
    text = nothing ? "no entry fits the module by name, shape and type:" : "";
  } else if (!result.mismatched.empty() || (options.strict && names_differ)) {
    text = "the entries do not fit the module:";
  }
  if (!text.empty()) {
    list_differences(text, result);
    text += "\n  " + advice(result, options);
    throw CheckpointError("engine.load_state_dict", text, {options.source, {}});
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
  bring_memory(module);  // for who reads data_ptr()
  collect(module, "", dict);
  return dict;
}

LoadResult load_state_dict(const torch::nn::Module& module,
                           const StateDict& dict,
                           const LoadOptions& options) {
  const StateDict own = state_dict(module);
  LoadResult result = compare(own, dict, options);
  judge(result, options);
  for (const std::string& name : result.loaded) {
    copy_values(own.at(name), dict.at(name));  // shares memory with the module's own
  }
  return result;
}

}  // namespace argosy::engine
