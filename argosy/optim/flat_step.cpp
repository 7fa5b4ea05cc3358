#include "argosy/optim/flat_step.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "argosy/base/fingerprint.h"
#include "argosy/engine/parts.h"
#include "argosy/optim/flat_view.h"

namespace argosy::optim {
namespace {

/// Places of some elements. Where gradients were not averaged, or one process has changed its own
/// or its weights, some of these differ.
std::array<std::size_t, 4> samples_of(std::size_t count) {
  return {0, count / 3, count / 2, count - 1};
}

/// Of their bits.
void add_samples(Fingerprint& all, const void* data, std::size_t count, std::size_t item) {
  for (const std::size_t i : samples_of(count)) {
    if (i < count) {
      all.add(std::string_view(static_cast<const char*>(data) + i * item, item));
    }
  }
}

/// "0.1, 0.25, -3".
std::string samples_in_words(const at::Tensor& flat, Precision precision) {
  const auto count = static_cast<std::size_t>(flat.numel());
  std::vector<std::string> values;
  for (const std::size_t i : samples_of(count)) {
    if (i < count) {
      values.push_back(precision == Precision::kF32
                           ? fmt::format("{}", static_cast<const float*>(flat.data_ptr())[i])
                           : fmt::format("{}", static_cast<const double*>(flat.data_ptr())[i]));
    }
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

void add_words(Choices& all,
               const engine::NamedTensors& parameters,
               const std::vector<Active>& updated,
               bool early) {
  for (const Active& one : updated) {
    const std::string& name = parameters[one.slot].first;
    const auto add = [&](std::string_view what, const std::string& value) {
      all.emplace_back(fmt::format("{} of {}", what, name), value);
    };
    add("learning rate", fmt::format("{}", one.update.lr));
    add("number of the update", fmt::format("{}", one.update.step));
    add("weight decay", in_words(one.update.decay));
    add("factor of the gradient", fmt::format("{}", one.update.grad_scale));
    add("limit of the gradient", fmt::format("{}", one.update.grad_limit));
    add("memory", one.part.divided ? "shared" : "its own");
    if (one.param.is_cpu()) {
      add("some elements of the gradient", samples_in_words(one.grad, one.range.precision));
      if (!early) {
        all.emplace_back("some elements of " + name,
                         samples_in_words(one.param, one.range.precision));
      }
    }
  }
}

void add(Fingerprint& all, const std::vector<Active>& updated, bool early) {
  for (const Active& one : updated) {
    all.add(one.slot);
    all.add(one.update.lr);
    all.add(one.update.step);
    all.add(one.update.decay.kind);
    all.add(one.update.decay.coeff);
    all.add(one.update.grad_scale);
    all.add(one.update.grad_limit);
    all.add(one.part.divided);
    if (!one.param.is_cpu()) {
      continue;  // no steps on devices are divided
    }
    const auto count = static_cast<std::size_t>(one.param.numel());
    add_samples(all, one.grad.data_ptr(), count, item_bytes(one.range.precision));
    if (!early) {  // else the others may be writing there
      add_samples(all, one.param.data_ptr(), count, item_bytes(one.range.precision));
    }
  }
}

/// This process's part of a state moves to memory that all see.
at::Tensor shared_state(const StepDivision& division,
                        const Active& one,
                        std::size_t index,
                        const at::Tensor& own) {
  const std::size_t item = item_bytes(one.range.precision);
  at::Tensor shared = division.state_of(one.param, index);
  auto* const to = static_cast<char*>(shared.data_ptr()) + one.part.begin * item;
  if (own.defined()) {
    const at::Tensor from = engine::in_order_of(one.param, own);
    const auto* const begin = static_cast<const char*>(from.data_ptr());
    std::memcpy(to, begin + one.part.begin * item, one.range.count * item);
  } else {
    std::memset(to, 0, one.range.count * item);
  }
  return shared;
}

}  // namespace

uint64_t digest(const std::vector<Active>& early, const std::vector<Active>& active) {
  Fingerprint all;
  all.add(early.size());
  add(all, early, true);
  add(all, active, false);
  return all.value();
}

Choices in_words(const engine::NamedTensors& parameters,
                 const std::vector<Active>& early,
                 const std::vector<Active>& active) {
  Choices all;
  for (std::size_t slot = 0; slot < parameters.size(); ++slot) {
    const auto is_its = [&](const Active& one) { return one.slot == slot; };
    const bool there = std::ranges::any_of(early, is_its) || std::ranges::any_of(active, is_its);
    all.emplace_back("gradient of " + parameters[slot].first, there ? "there" : "undefined");
  }
  add_words(all, parameters, early, true);
  add_words(all, parameters, active, false);
  return all;
}

void keep_parts(const ShardedStep& step,
                const engine::NamedTensors& parameters,
                std::vector<Slot>& slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const at::Tensor& parameter = parameters[i].second;
    for (at::Tensor& state : slots[i].states) {
      const at::Tensor part =
          engine::elements_of(engine::in_order_of(parameter, state), step.part_of(parameter));
      state = step.make_state(part).copy_(part);
    }
  }
}

void gather_states(const ShardedStep& step,
                   const engine::NamedTensors& parameters,
                   std::vector<Slot>& slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (at::Tensor& state : slots[i].states) {
      state = step.gather(parameters[i].second, state);
    }
  }
}

void take_back(Slot& slot) {
  for (at::Tensor& state : slot.states) {
    state = slot.shared ? state.clone() : state;
  }
  slot.shared = false;
}

void share_states(const StepDivision& division,
                  std::size_t states,
                  std::vector<Active>& active,
                  std::vector<Slot>& slots) {
  for (Active& one : active) {
    if (!one.part.divided) {
      continue;
    }
    Slot& slot = slots[one.slot];
    slot.states.resize(states);
    for (std::size_t k = 0; k < states; ++k) {
      at::Tensor& state = slot.states[k];
      if (!slot.shared) {
        state = shared_state(division, one, k, state);
      }
      one.range.states[k] =
          static_cast<char*>(state.data_ptr()) + one.part.begin * item_bytes(one.range.precision);
    }
    slot.shared = true;
  }
}

}  // namespace argosy::optim
