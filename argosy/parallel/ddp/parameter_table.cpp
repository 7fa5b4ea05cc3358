#include "argosy/parallel/ddp/parameter_table.h"

#include <algorithm>
#include <unordered_set>

#include <c10/util/hash.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/parallel/ddp/sparse_gradients.h"

namespace argosy::parallel::ddp {
namespace {

constexpr const char* kWrapAgain =
    "Change a model before it is wrapped, or wrap it again (on all ranks).";

std::vector<int64_t> strides_of(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided ? tensor.strides().vec() : std::vector<int64_t>();
}

void check_supported(const std::string& name, const at::Tensor& parameter) {
  ARGOSY_CHECK(parameter.layout() == at::kStrided && !parameter.is_meta(),
               "parallel.ddp",
               "parameter {} must be a dense tensor with values, got {} on {}",
               name,
               c10::str(parameter.layout()),
               parameter.device().str());
  switch (parameter.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
      return;
    default:
      throw UsageError("parallel.ddp",
                       fmt::format("parameter {} cannot be averaged: expected f32, f64, f16 or "
                                   "bf16, got {}. Freeze it: requires_grad_(false).",
                                   name,
                                   dtype_name(parameter.scalar_type())));
  }
}

}  // namespace

ParameterTable::ParameterTable(const torch::nn::Module& module) {
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& [name, weight] : sparse_weights(module)) {
    seen.insert(weight.unsafeGetTensorImpl());
  }
  const size_t sparse = seen.size();
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& tensor = item.value();
    if (!tensor.defined()) {
      continue;
    }
    entries_.push_back({item.key(),
                        tensor,
                        tensor.scalar_type(),
                        tensor.sizes().vec(),
                        strides_of(tensor),
                        tensor.requires_grad()});
    if (tensor.requires_grad() && seen.insert(tensor.unsafeGetTensorImpl()).second) {
      check_supported(item.key(), tensor);
      ARGOSY_CHECK(
          trainable_.empty() || tensor.device() == device(),
          "parallel.ddp",
          "parameter {} is on {}, {} is on {}: the trainable parameters of one wrapper lie "
          "on one device. Wrap the parts of the model one by one.",
          item.key(),
          tensor.device().str(),
          names_.front(),
          device().str());
      trainable_.push_back(tensor);
      names_.push_back(item.key());
    }
  }
  ARGOSY_CHECK(!trainable_.empty() || sparse == 0,
               "parallel.ddp",
               "all {} parameters that require a gradient are weights of sparse embeddings, and a "
               "wrapper needs a dense one. Build one of the embeddings with .sparse(false).",
               sparse);
  ARGOSY_CHECK(!trainable_.empty(),
               "parallel.ddp",
               "none of the module's {} parameters requires a gradient, so there is nothing to "
               "average. Use the module without DistributedDataParallel.",
               entries_.size());
  accept_layout();
}

std::string ParameterTable::names(std::span<const size_t> indices) const {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t k = 0; k < std::min(kShown, indices.size()); ++k) {
    text += (k == 0 ? "" : ", ") + names_[indices[k]];
  }
  return indices.size() <= kShown ? text
                                  : text + fmt::format(" and {} more", indices.size() - kShown);
}

void ParameterTable::check_unchanged(const torch::nn::Module& module) const {
  const std::vector<at::Tensor> now = module.parameters();
  size_t k = 0;
  for (const at::Tensor& tensor : now) {
    if (!tensor.defined()) {
      continue;
    }
    if (k == entries_.size() || !tensor.is_same(entries_[k].tensor)) {
      name_the_difference(module);
    }
    check_entry(entries_[k], tensor);
    ++k;
  }
  if (k != entries_.size()) {
    name_the_difference(module);
  }
}

void ParameterTable::accept_layout() {
  uint64_t all = 0;
  for (Entry& entry : entries_) {
    entry.strides = strides_of(entry.tensor);
    for (size_t dim = 0; dim < entry.strides.size() && entry.requires_grad; ++dim) {
      const bool counts = entry.sizes[dim] > 1;  // others' strides mean nothing
      all = c10::hash_combine(all, counts ? static_cast<uint64_t>(entry.strides[dim]) : 0);
    }
  }
  layout_ = static_cast<uint32_t>(all ^ all >> 32U);
}

void ParameterTable::check_entry(const Entry& entry, const at::Tensor& now) const {
  ARGOSY_CHECK(entry.requires_grad || !now.requires_grad(),
               "parallel.ddp",
               "parameter {} was frozen when the model was wrapped, and unfrozen "
               "(requires_grad_(true)) afterwards. {}",
               entry.name,
               kWrapAgain);
  ARGOSY_CHECK(now.scalar_type() == entry.dtype && now.sizes() == entry.sizes,
               "parallel.ddp",
               "parameter {} changed after the model was wrapped: from {} {} to {} {}. {}",
               entry.name,
               dtype_name(entry.dtype),
               text::shape(entry.sizes),
               dtype_name(now.scalar_type()),
               text::shape(now.sizes()),
               kWrapAgain);
  ARGOSY_CHECK(now.layout() != at::kStrided || now.strides() == entry.strides,
               "parallel.ddp",
               "parameter {} changed its memory layout after the model was wrapped: from strides "
               "{} to {}. {}",
               entry.name,
               text::shape(entry.strides),
               text::shape(now.strides()),
               kWrapAgain);
}

void ParameterTable::name_the_difference(const torch::nn::Module& module) const {
  const auto now = module.named_parameters();
  for (const auto& item : now) {
    const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.name == item.key();
    });
    if (!item.value().defined()) {
      continue;
    }
    ARGOSY_CHECK(known != entries_.end(),
                 "parallel.ddp",
                 "parameter {} was added after the model was wrapped. {}",
                 item.key(),
                 kWrapAgain);
    ARGOSY_CHECK(item.value().is_same(known->tensor),
                 "parallel.ddp",
                 "parameter {} was replaced by another tensor after the model was wrapped. {}",
                 item.key(),
                 kWrapAgain);
  }
  for (const Entry& entry : entries_) {
    const at::Tensor* tensor = now.find(entry.name);
    ARGOSY_CHECK(tensor != nullptr && tensor->defined(),
                 "parallel.ddp",
                 "parameter {} was removed after the model was wrapped. {}",
                 entry.name,
                 kWrapAgain);
  }
  throw UsageError(
      "parallel.ddp",
      fmt::format("the order of the parameters changed after wrapping. {}", kWrapAgain));
}

std::string dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "f32";
    case at::kDouble:
      return "f64";
    case at::kHalf:
      return "f16";
    case at::kBFloat16:
      return "bf16";
    case at::kChar:
      return "i8";
    case at::kByte:
      return "u8";
    case at::kShort:
      return "i16";
    case at::kInt:
      return "i32";
    case at::kLong:
      return "i64";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(dtype);
  }
}

}  // namespace argosy::parallel::ddp
