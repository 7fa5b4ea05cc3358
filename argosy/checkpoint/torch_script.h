#pragma once

#include <string>

#include "argosy/engine/state_dict.h"

// Internal to the room.
namespace argosy::checkpoint {

/// Returns the entries of an archive by torch::save(module, …) or Python's torch.jit.save().
/// fleet::save() wrote such archives before version 0.1.
/// Errors: CheckpointError if there is no such file or it is neither of these.
[[nodiscard]] engine::StateDict read_torch_script(const std::string& path);

}  // namespace argosy::checkpoint
