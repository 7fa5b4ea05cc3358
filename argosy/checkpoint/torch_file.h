#pragma once

#include <functional>
#include <string>

#include "argosy/engine/state_dict.h"
#include "argosy/formats/pickle_value.h"

// Internal to the room.
namespace argosy::checkpoint {

struct ReadTorchFileOptions {
  /// The key of the state_dict in a checkpoint: "state_dict", "model". Empty: the file is a
  /// state_dict.
  std::string key{};
  /// A prefix that is removed from names: "module." of DistributedDataParallel, "_orig_mod." of
  /// torch.compile.
  std::string strip_prefix{};
};

/// Returns the state_dict that Python wrote with `torch.save(model.state_dict(), path)`.
///
///     engine::load_state_dict(net, read_torch_file("resnet18-f37072fd.pth"));
///
/// Nothing in the file is executed. Only plain Python objects, tensors and parameters are built;
/// any other object is refused by its name. Tensors lie on the CPU, whatever the file says, and
/// keep their strides. Tensors that shared memory share it again. Only the state_dict is read into
/// memory, not the optimizer's state beside it.
/// Errors: CheckpointError with the path and, where one is to blame, the entry: no such file;
///   damaged or truncated (checksums are compared); refused objects; not a state_dict, with the
///   keys that were found; the format from before PyTorch 1.6 and TorchScript, with the way out.
/// Cost: reads the file once; one copy of the weights.
/// Source: torch/serialization.py and torch/_utils.py of PyTorch 2.15.
[[nodiscard]] engine::StateDict read_torch_file(const std::string& path,
                                                const ReadTorchFileOptions& options = {});

/// The whole content of a file by torch.save(), as a tree. Its tensors are made on demand.
struct TorchObjects {
  formats::PickleValue value{};
  /// Returns the tensor at this node, or an undefined one if the node is something else. `name` is
  /// for messages.
  std::function<at::Tensor(const formats::PickleValue& value, const std::string& name)> tensor{};
};
/// Errors: as read_torch_file().
[[nodiscard]] TorchObjects read_torch_objects(const std::string& path);

}  // namespace argosy::checkpoint
