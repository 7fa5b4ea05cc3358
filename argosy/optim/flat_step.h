#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/named.h"
#include "argosy/optim/rule.h"
#include "argosy/optim/sharded_step.h"
#include "argosy/optim/step_division.h"

// Internal to the room.
namespace argosy::optim {

/// An optimizer's data about one parameter.
struct Slot {
  int64_t step = 0;
  std::vector<at::Tensor> states{};  ///< empty until the first update
  bool early = false;                ///< updated ahead of the step() that completes the step
  bool shared = false;               ///< the states lie in memory of all dividing processes
};

/// One parameter in one step.
struct Active {
  std::size_t slot = 0;
  /// Shares the parameter's memory unless it has gaps. Of a sharded step: this process's part.
  at::Tensor param{};
  StepDivision::Part part{};
  MemoryRange range{};  ///< this part of it; without elements on a device
  at::Tensor grad{};    ///< in the order of `param`; kept while `range` points there
  Update update{};
};

/// Returns a digest of what the processes that divide a step must agree on: the early updates and
/// those that follow.
[[nodiscard]] uint64_t digest(const std::vector<Active>& early, const std::vector<Active>& active);

/// The same in words, for an error that says what differs.
[[nodiscard]] Choices in_words(const engine::NamedTensors& parameters,
                               const std::vector<Active>& early,
                               const std::vector<Active>& active);

/// Leaves of whole states this process's parts.
void keep_parts(const ShardedStep& step,
                const engine::NamedTensors& parameters,
                std::vector<Slot>& slots);
/// Collective: makes the states whole again.
void gather_states(const ShardedStep& step,
                   const engine::NamedTensors& parameters,
                   std::vector<Slot>& slots);

/// Makes the shared state this process's own. Nobody writes to it, because this process is in no
/// step.
void take_back(Slot& slot);

/// Call it before all processes update: each brings its part of the state, which was its own until
/// now. `states` is the number per parameter.
void share_states(const StepDivision& division,
                  std::size_t states,
                  std::vector<Active>& active,
                  std::vector<Slot>& slots);

}  // namespace argosy::optim
