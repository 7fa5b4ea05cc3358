#pragma once

#include <string>

#include "argosy/engine/state_dict.h"

// Internal to the room.
namespace argosy::checkpoint {

/// The entries of an archive by torch::save(module, …) or Python's torch.jit.save(); these are what
/// fleet::save() wrote before version 0.1.
/// Errors: CheckpointError when there is no such file or it is none of these.
[[nodiscard]] engine::StateDict read_torch_script(const std::string& path);

}  // namespace argosy::checkpoint
