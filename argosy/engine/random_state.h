#pragma once

#include "argosy/engine/state_dict.h"

namespace argosy::engine {

/// Where libtorch's generators stand: of the CPU ("random.cpu") and of the CUDA devices on which
/// `module` has parameters or buffers ("random.cuda:0"). What dropout, torch::rand and randperm
/// draw next is a function of it. Copies, a few KiB each, on the CPU.
[[nodiscard]] StateDict random_state(const torch::nn::Module& module);

/// Sets the generators that `state` has entries for; others stay, and so do generators whose device
/// is not here.
/// Errors: CheckpointError for an entry that is no generator's state.
void load_random_state(const StateDict& state);

}  // namespace argosy::engine
