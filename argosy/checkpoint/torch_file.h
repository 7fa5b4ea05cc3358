#pragma once

#include <functional>
#include <string>

#include "argosy/engine/state_dict.h"
#include "argosy/formats/pickle_value.h"

// Internal to the room.
namespace argosy::checkpoint {

struct ReadTorchFileOptions {
  /// Where a checkpoint keeps its state_dict: "state_dict", "model". Empty: the file is one.
  std::string key{};
  /// Taken away from names that begin with it: "module." of DistributedDataParallel, "_orig_mod."
  /// of torch.compile.
  std::string strip_prefix{};
};

/// The state_dict that Python wrote with `torch.save(model.state_dict(), path)`.
///
///     engine::load_state_dict(net, read_torch_file("resnet18-f37072fd.pth"));
///
/// Nothing in the file is executed: of Python's objects it builds the plain ones, tensors and
/// parameters, and refuses every other by its name. Tensors lie on the CPU, whatever the file says,
/// with their strides; those that shared memory share it again. Only what belongs to the state_dict
/// is taken into memory, not the optimizer's state beside it.
/// Errors: CheckpointError with the path and, where one is to blame, the entry: no such file;
///   damaged or truncated (checksums are compared); refused objects; not a state_dict, with the
///   keys that were found; the format from before PyTorch 1.6 and TorchScript, with the way out.
/// Cost: reads the file once; one copy of the weights.
/// Source: torch/serialization.py and torch/_utils.py of PyTorch 2.15.
[[nodiscard]] engine::StateDict read_torch_file(const std::string& path,
                                                const ReadTorchFileOptions& options = {});

/// All that torch.save() wrote, as a tree. Its tensors are made when they are asked for.
struct TorchObjects {
  formats::PickleValue value{};
  /// The tensor that stands there; undefined for anything else. `name` is for messages.
  std::function<at::Tensor(const formats::PickleValue& value, const std::string& name)> tensor{};
};
/// Errors: as read_torch_file()'s.
[[nodiscard]] TorchObjects read_torch_objects(const std::string& path);

/// Writes what Python reads with `torch.load(path)`, `weights_only=True` included: an OrderedDict
/// of names and tensors.
///
/// The file appears whole or not at all, as save_weights() promises. Dense tensors keep their
/// strides (channels_last), others become contiguous; entries that are the same tensor stay one
/// (tied weights), other views become tensors of their own. Errors: CheckpointError: the system's
/// words; an entry that is undefined or of a type that Python's
///   storages do not have.
void write_torch_file(const std::string& path, const engine::StateDict& dict);

}  // namespace argosy::checkpoint
