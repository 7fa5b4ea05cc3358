#pragma once

#include <string>

#include "argosy/engine/state_dict.h"

// Internal to the room.
namespace argosy::checkpoint {

/// Returns the tensors of the files that an index names: Hugging Face's
/// model.safetensors.index.json beside model-00001-of-00004.safetensors and so on. Errors:
/// CheckpointError with the path of the index, or of a shard that cannot be read: no JSON or no
/// "weight_map"; a file outside of the index's folder; a shard that is missing; with its name a
/// tensor that is in two shards, or not in the one that the index says.
[[nodiscard]] engine::StateDict read_safetensors_index(const std::string& path);

}  // namespace argosy::checkpoint
