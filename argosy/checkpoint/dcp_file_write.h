#pragma once

#include <string>

#include "argosy/engine/state_dict.h"

namespace argosy::checkpoint {

/// Writes a folder in the form of PyTorch's distributed checkpoint (DCP).
///
///     checkpoint::write_dcp("resnet.dcp", last.part("model", Reading::kWhenUsed));
///
/// Python loads it on any mesh by `torch.distributed.checkpoint.load(state_dict,
/// checkpoint_id=path)`, and `dcp_to_torch_save(path, "resnet.pt")` makes one file of it.
/// Tensors come one after the other through memory. The folder appears whole or not at all; an
/// existing one is an error.
/// Errors: CheckpointError with the path, or naming an entry of a type that PyTorch's files lack.
/// Source: torch/distributed/checkpoint/metadata.py and filesystem.py of 2.15.
void write_dcp(const std::string& path, const engine::StateDict& dict);

}  // namespace argosy::checkpoint
