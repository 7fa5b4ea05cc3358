#pragma once

#include <string>

#include "argosy/engine/state_dict.h"
#include "argosy/formats/pickle_value.h"

// Internal to the room.
namespace argosy::checkpoint {

/// Returns the state_dict that Paddle wrote with `paddle.save(layer.state_dict(),
/// "model.pdparams")`.
///
///     engine::load_state_dict(net, from_paddle(read_paddle_file("model.pdparams"), net));
///
/// Names are the structured ones ("conv1.weight"); the table of Paddle's own names
/// (`StructuredToParameterName@@`) is left out. Paddle's weights of linear layers are [in, out],
/// libtorch's are [out, in], and Paddle's norms use `_mean` and `_variance`: see
/// docs/reference/checkpoints.md. Paddle writes bf16 as arrays of uint16, which become bf16 again.
/// Nothing in the file is executed: anything but plain values and arrays is refused by its name.
/// Errors: CheckpointError with the path: no such file; damaged or truncated; refused objects;
///   entries that are not arrays (a `.pdopt`), by name; arrays of a type that is not read (f16).
/// Cost: reads the file once; two copies of the weights for a moment.
/// Source: paddle/framework/io.py and io_utils.py of Paddle 3.3 (protocols 2 to 5, big parameters
/// in slices).
[[nodiscard]] engine::StateDict read_paddle_file(const std::string& path);

/// The whole content of a file by paddle.save(): a dict of names, arrays and numbers.
[[nodiscard]] formats::PickleValue read_paddle_objects(const std::string& path);
/// Errors: CheckpointError with path and name for an array of a type that is not read.
[[nodiscard]] at::Tensor to_tensor(const formats::PickleArray& array,
                                   const std::string& path,
                                   const std::string& name);

}  // namespace argosy::checkpoint
