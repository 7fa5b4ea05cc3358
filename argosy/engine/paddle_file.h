#pragma once

#include <string>

#include "argosy/engine/state_dict.h"

namespace argosy::engine {

/// The state_dict that Paddle wrote with `paddle.save(layer.state_dict(), "model.pdparams")`.
///
///     engine::load_state_dict(net, engine::read_paddle_file("model.pdparams"));
///
/// Names are the structured ones ("conv1.weight"); the table of Paddle's own names
/// (`StructuredToParameterName@@`) is left out. Paddle's weights of linear layers are [in, out],
/// where libtorch's are [out, in], and its norms say `_mean` and `_variance`: see
/// docs/reference/checkpoints.md. Arrays of uint16 are bf16, as Paddle writes those.
/// Nothing in the file is executed: all but plain values and arrays is refused by its name.
/// Errors: CheckpointError with the path: no such file; damaged or truncated; refused objects;
///   entries that are no arrays (a `.pdopt`), by name; arrays of a type that is not read (f16).
/// Cost: reads the file once; two copies of the weights for a moment.
/// Source: paddle/framework/io.py and io_utils.py of Paddle 3.3 (protocols 2 to 5, big parameters
/// in slices).
[[nodiscard]] StateDict read_paddle_file(const std::string& path);

}  // namespace argosy::engine
