#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/rule.h"
#include "argosy/optim/step_division.h"

// Internal to the room.
namespace argosy::optim {

/// What an optimizer keeps for a parameter.
struct Slot {
  int64_t step = 0;
  std::vector<at::Tensor> states{};  ///< empty until the first update
  bool early = false;                ///< updated ahead of the step() that completes the step
  bool shared = false;  ///< they lie where the processes that divide a step all see them
};

/// One parameter in one step.
struct Active {
  std::size_t slot = 0;
  at::Tensor param{};  ///< flat on the CPU; shares the parameter's memory unless it has gaps
  StepDivision::Part part{};
  MemoryRange range{};  ///< that part of it; without elements on a device
  at::Tensor grad{};    ///< in its order; kept as long as range points there
  Update update{};
};

/// Of what processes that divide a step must agree on: what was updated early, what is about to be.
[[nodiscard]] uint64_t digest(const std::vector<Active>& early, const std::vector<Active>& active);

/// State that all processes see becomes this one's. Nobody writes to it: this process is in no
/// step.
void take_back(Slot& slot);

/// All processes are about to update: each brings its part of the state that was its own till now.
/// `states`: how many a parameter has.
void share_states(const StepDivision& division,
                  std::size_t states,
                  std::vector<Active>& active,
                  std::vector<Slot>& slots);

}  // namespace argosy::optim
