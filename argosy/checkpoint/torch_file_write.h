#pragma once

#include <string>

#include "argosy/engine/state_dict.h"
#include "argosy/os/whole_file.h"

// Internal to the room.
namespace argosy::checkpoint {

/// Writes a file that Python reads with `torch.load(path)`, also with `weights_only=True`: an
/// OrderedDict of names and tensors.
///
/// The file appears whole or not at all, as with save_weights(). Dense tensors keep their strides
/// (channels_last), others become contiguous. Entries that are the same tensor stay one (tied
/// weights); other views become separate tensors.
/// Errors: CheckpointError with the system's message, or for an entry that is undefined or of a
/// type that Python's storages do not have.
void write_torch_file(const std::string& path, const engine::StateDict& dict);

/// Writes what `torch.save(tensor, file)` would. `name` is for errors, which are those above.
void write_torch_tensor(const std::string& name, const at::Tensor& tensor, os::WholeFile& file);

}  // namespace argosy::checkpoint
