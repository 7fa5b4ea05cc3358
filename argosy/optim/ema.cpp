#include "argosy/optim/ema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/engine/parts.h"

namespace argosy::optim {
namespace {

/// Of 16 bits an average would stand still: its steps are smaller than half of the last digit.
at::ScalarType type_of_average(const at::Tensor& own) {
  const at::ScalarType type = own.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

bool fits(const at::Tensor& own, const at::Tensor* given) {
  return given != nullptr && given->defined() && given->sizes() == own.sizes() &&
         (given->scalar_type() == type_of_average(own) ||
          given->scalar_type() == own.scalar_type());
}

/// What this process has of a tensor: where ranks divide it its part, flat.
at::Tensor values_here(const at::Tensor& own, bool to_write = false) {
  const auto part = engine::own_part(own, to_write);
  return part.has_value() ? part->elements : own.detach();
}

/// The same in the type of its average.
at::Tensor values_to_average(const at::Tensor& own) {
  return values_here(own).to(type_of_average(own));
}

/// The tensor itself where ranks divide it, to know later how they did.
at::Tensor as_divided(const at::Tensor& own) {
  return engine::own_part(own).has_value() ? own.detach() : at::Tensor();
}

bool is_divided_as(const at::Tensor& own, const at::Tensor& before) {
  if (!before.defined() || !engine::own_part(own).has_value()) {
    return before.defined() == engine::own_part(own).has_value();
  }
  return own.is_alias_of(before) && own.storage_offset() == before.storage_offset() &&
         own.strides() == before.strides();
}

/// Every handle on the tensor sees it. Nothing is written where it lay before: other processes may
/// share that memory. A backward that still needs the values from before says so.
void give_memory(const at::Tensor& own, const at::Tensor& memory) {
  own.set_data(memory);
  own.unsafeGetTensorImpl()->bump_version();
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(const engine::NamedTensors& parameters,
                                                   const engine::NamedTensors& buffers,
                                                   const ExponentialMovingAverageOptions& options)
    : options_(options) {
  ARGOSY_CHECK(options.decay >= 0 && options.decay <= 1,
               "optim.ExponentialMovingAverage",
               "decay must be in [0, 1], got {}",
               options.decay);
  ARGOSY_CHECK(
      !parameters.empty(), "optim.ExponentialMovingAverage", "there are no parameters to average");
  add(parameters);
  add(buffers);
}

// Tied weights count once, under the first name.
void ExponentialMovingAverage::add(const engine::NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const bool known = std::ranges::any_of(
        own_, [&own = tensor](const auto& entry) { return entry.second.is_same(own); });
    if (tensor.defined() && !known) {
      own_.emplace_back(name, tensor);
      averages_.push_back(values_to_average(tensor).clone());
      divided_.push_back(as_divided(tensor));
    }
  }
}

/// What this process has of an average, where the tensor may have been whole, or divided in another
/// way, when it was made.
at::Tensor ExponentialMovingAverage::average_here(std::size_t i) const {
  const at::Tensor& own = own_[i].second;
  const at::Tensor& before = divided_[i];
  if (is_divided_as(own, before)) {
    return averages_[i];
  }
  const at::Tensor whole = before.defined()
                               ? engine::coming_memory_of(before)->gather(before, averages_[i])
                               : averages_[i];
  const auto part = engine::own_part(own);
  return part.has_value() ? engine::elements_like(own, whole, part->range).clone() : whole;
}

void ExponentialMovingAverage::move_average_here(std::size_t i) {
  averages_[i] = average_here(i);
  divided_[i] = as_divided(own_[i].second);
}

void ExponentialMovingAverage::update() {
  ARGOSY_CHECK(!applied(),
               "optim.ExponentialMovingAverage",
               "update() while the average is applied. Call restore() first, or end the scope of "
               "Averaged.");
  const c10::NoGradGuard no_grad;
  const auto n = static_cast<double>(num_updates_);
  const double decay = options_.warmup == EmaWarmup::kNumUpdates
                           ? std::min(options_.decay, (1 + n) / (10 + n))
                           : options_.decay;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const at::Tensor values = values_to_average(own_[i].second);
    move_average_here(i);
    if (num_updates_ == 0 || !averages_[i].is_floating_point()) {
      averages_[i].copy_(values);
    } else {
      averages_[i].lerp_(values, 1 - decay);
    }
  }
  ++num_updates_;
}

void ExponentialMovingAverage::apply() {
  ARGOSY_CHECK(num_updates_ > 0,
               "optim.ExponentialMovingAverage",
               "there is no average before the first update()");
  ARGOSY_CHECK(!applied(),
               "optim.ExponentialMovingAverage",
               "the average is applied already. Call restore() first.");
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> applied;
  for (std::size_t i = 0; i < own_.size(); ++i) {  // all memory is there before the first change
    const at::Tensor& own = own_[i].second;
    move_average_here(i);
    ARGOSY_CHECK(engine::own_part(own).has_value() == engine::own_part(own, true).has_value(),
                 "optim.ExponentialMovingAverage",
                 "whole_parameters() holds {}. Apply the average first, and hold it then",
                 own_[i].first);
    applied.push_back(engine::own_part(own).has_value()
                          ? values_here(own, /*to_write=*/true).clone()  // perhaps of more bits
                          : at::empty_like(own.detach()).copy_(averages_[i]));
  }
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const at::Tensor& own = own_[i].second;
    if (engine::own_part(own).has_value()) {
      values_here(own, /*to_write=*/true).copy_(averages_[i]);
      kept_.push_back(applied[i]);
    } else {
      kept_.push_back(own.detach());
      give_memory(own, applied[i]);
    }
  }
}

void ExponentialMovingAverage::restore() noexcept {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const at::Tensor own = own_[i].second;
    if (const auto part = engine::own_part(own); part.has_value()) {
      const bool held = !engine::own_part(own, /*to_write=*/true).has_value();
      (held ? engine::elements_of(own.detach(), part->range)  // what of the whole is kept
            : values_here(own, /*to_write=*/true))
          .copy_(kept_[i]);
    } else {
      give_memory(own_[i].second, kept_[i]);
    }
  }
  kept_.clear();
}

std::string ExponentialMovingAverage::parameters() const {
  return fmt::format("decay={}{}{}",
                     options_.decay,
                     options_.warmup == EmaWarmup::kNumUpdates ? ", warmup=num_updates" : "",
                     options_.buffers == EmaBuffers::kAverage ? ", buffers=average" : "");
}

/// Where ranks divide the model, a tensor that is gathered when it is read.
at::Tensor ExponentialMovingAverage::whole_average(std::size_t i) const {
  const at::Tensor own = own_[i].second;
  at::Tensor average = average_here(i);
  const auto part = engine::own_part(own);
  if (!part.has_value()) {
    return average;
  }
  return engine::divided_tensor(own, {part->range, average}, [own, average] {
    return engine::coming_memory_of(own)->gather(own, average);
  });
}

EmaState ExponentialMovingAverage::state_dict() const {
  EmaState state{.num_updates = num_updates_};
  for (std::size_t i = 0; i < own_.size(); ++i) {
    state.averages.set(own_[i].first, whole_average(i));
  }
  return state;
}

void ExponentialMovingAverage::load_state_dict(const EmaState& state) {
  std::vector<std::string> wrong;
  std::unordered_set<std::string> names;
  for (const auto& [name, tensor] : own_) {
    names.insert(name);
    if (!fits(tensor, state.averages.find(name))) {
      wrong.push_back(fmt::format("{} (missing, or not {})", name, text::shape(tensor)));
    }
  }
  for (const auto& [name, tensor] : state.averages) {
    if (!names.contains(name)) {
      wrong.push_back(name + " (unexpected)");
    }
  }
  if (!wrong.empty() || state.num_updates < 0) {
    throw CheckpointError("optim.ExponentialMovingAverage",
                          fmt::format("the averages are not of this model: {}; {} updates",
                                      fmt::join(wrong, ", "),
                                      state.num_updates));
  }
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const at::Tensor& own = own_[i].second;
    const at::Tensor& saved = state.averages.at(own_[i].first);
    const auto part = engine::own_part(own);
    averages_[i] = at::empty_like(values_to_average(own));
    averages_[i].copy_(part.has_value() ? engine::elements_like(own, saved, part->range)
                                        : engine::values_of(saved));
    divided_[i] = as_divided(own);
  }
  num_updates_ = state.num_updates;
}

}  // namespace argosy::optim
