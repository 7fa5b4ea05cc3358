#pragma once

#include <vector>

#include <c10/core/Device.h>

#include "argosy/engine/state_dict.h"

namespace argosy::engine {

/// Returns the states of libtorch's generators: of the CPU ("random.cpu") and of the CUDA devices
/// on which `module` has parameters or buffers ("random.cuda:0"). They determine the next draws of
/// dropout, torch::rand and randperm. The entries are copies on the CPU, a few KiB each.
[[nodiscard]] StateDict random_state(const torch::nn::Module& module);

/// The same for the CUDA devices among `devices`.
[[nodiscard]] StateDict random_state(const std::vector<at::Device>& devices);

/// Sets the generators that have entries in `state`. Other generators stay, and so do those of a
/// device that this machine does not have.
/// Errors: CheckpointError for an entry that is not a generator's state.
void load_random_state(const StateDict& state);

/// The same for a state that this process has just had: the seed that base_seed() tells is not
/// asked for again.
void put_back_random_state(const StateDict& state);

}  // namespace argosy::engine
