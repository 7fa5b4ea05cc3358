#pragma once

#include <string>

#include "argosy/engine/state_dict.h"

// Internal to the room.
namespace argosy::checkpoint {

/// Writes a file that paddle.load(path) reads: names and arrays, by pickle's protocol 2.
/// Errors: CheckpointError with the system's message, or naming an entry whose type numpy does not
/// have.
void write_paddle_file(const std::string& path, const engine::StateDict& dict);

}  // namespace argosy::checkpoint
